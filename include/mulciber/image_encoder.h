// Pictures to vectors, to labels, and to the texts that fit them, with vision transformers on any
// Vulkan device. No Vulkan headers are needed. Errors are the types of mulciber/error.h; nothing is
// printed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mulciber/device.h"
#include "mulciber/load_options.h"
#include "mulciber/open_model.h"
#include "mulciber/picture.h"

namespace mulciber {

/// How pictures are computed together.
struct PictureBatchOptions {
  uint32_t batch_pictures = 16;  // at most
  /// Called after every batch with the pictures done so far and their number in all.
  std::function<void(size_t done, size_t total)> progress;
  /// Looked at between batches; once true, the call returns with what is complete.
  const std::atomic<bool>* cancel = nullptr;
};

/// Of the last call, except where it says "load".
struct PictureStatistics {
  size_t pictures = 0, batches = 0;
  double load_seconds = 0;     // files to device
  double resize_seconds = 0;   // to what the model takes, on the host
  double prepare_seconds = 0;  // building and recording programs
  double run_seconds = 0;      // on the device, with the way there and back
  double total_seconds = 0;
  uint64_t weight_bytes = 0;            // load: on the device
  uint64_t predicted_device_bytes = 0;  // weights and activations, before allocating
  uint64_t peak_device_bytes = 0;       // handed out at most
};

enum class PicturePoolingChoice {
  kModel,  // as the model was trained: the class token, or a head of attention
  kMean,   // the mean of the states of all patches
};

struct PictureEmbedOptions {
  PicturePoolingChoice pooling = PicturePoolingChoice::kModel;
  bool normalize = false;  // vectors of length 1
  PictureBatchOptions batch;
};

struct PictureVector {
  std::vector<float> values;
  bool complete = false;  // false: cancelled before this picture was done
};

/// How much each patch of a picture attended to the others, and what of it reached the token that
/// stands for the whole.
struct PictureAttention {
  uint32_t layers = 0, heads = 0;
  uint32_t rows = 0, columns = 0;  // of patches
  /// (layers, heads, rows, columns): what the class token attends to; of models without one the
  /// mean over the patches that attend.
  std::vector<float> maps;
  /// (rows, columns): the maps of all layers multiplied, heads averaged, half of each layer passed
  /// on as it is. Source: Abnar and Zuidema 2020, arXiv:2005.00928.
  std::vector<float> rollout;
  Picture seen;  // the picture as the model reads it: resized and cut
};

/// A vision transformer (a Hugging Face folder with a preprocessor_config.json) on a device. Of
/// CLIP and SigLIP vectors are those of the space that pictures and texts share.
class MULCIBER_API ImageEncoder {
 public:
  /// Throws ModelError when the folder does not hold such a model or its files disagree,
  /// DeviceError when the model does not fit the device's memory.
  ImageEncoder(std::shared_ptr<Device> device, const std::string& folder,
               const LoadOptions& options = {});
  ImageEncoder(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
               const LoadOptions& options = {});
  ~ImageEncoder();
  ImageEncoder(ImageEncoder&&) noexcept;
  ImageEncoder& operator=(ImageEncoder&&) noexcept;

  /// Vectors of pictures, in their order. Throws ModelError when the model cannot take a picture.
  std::vector<PictureVector> embed(std::span<const Picture> pictures,
                                   const PictureEmbedOptions& options = {});
  PictureVector embed(const Picture& picture, const PictureEmbedOptions& options = {});
  /// Where the model looked.
  PictureAttention attention(const Picture& picture);

  const PictureStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;

 private:
  friend class PictureTask;  // mulciber/picture_task.h
  struct Impl;
  std::shared_ptr<Impl> impl_;  // tasks keep it too
};

struct PictureLabels {
  /// Of every label, in the order of labels(): they add up to 1, or are each of its own where
  /// several_labels().
  std::vector<float> probabilities;
  std::vector<float> logits;
  uint32_t best = 0;      // the most probable label
  bool complete = false;  // as PictureVector
};

/// A vision transformer that was trained to label pictures.
class MULCIBER_API ImageClassifier {
 public:
  /// As ImageEncoder; throws ModelError too where the model has no classifier.
  ImageClassifier(std::shared_ptr<Device> device, const std::string& folder,
                  const LoadOptions& options = {});
  ImageClassifier(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                  const LoadOptions& options = {});
  ~ImageClassifier();
  ImageClassifier(ImageClassifier&&) noexcept;
  ImageClassifier& operator=(ImageClassifier&&) noexcept;

  std::vector<PictureLabels> classify(std::span<const Picture> pictures,
                                      const PictureBatchOptions& options = {});
  PictureLabels classify(const Picture& picture, const PictureBatchOptions& options = {});
  PictureAttention attention(const Picture& picture);

  const std::vector<std::string>& labels() const;
  bool several_labels() const;
  const PictureStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct PictureMatch {
  /// Of every text: of CLIP they add up to 1, of SigLIP each is of its own.
  std::vector<float> probabilities;
  std::vector<float> logits;  // scaled cosines
  uint32_t best = 0;
  bool complete = false;  // as PictureVector
};

/// A model of pictures and texts in one space (CLIP, SigLIP), which says what text fits a picture:
/// also labels that nobody trained it for.
class MULCIBER_API ImageTextMatcher {
 public:
  /// As ImageEncoder; throws ModelError too where the model reads no texts.
  ImageTextMatcher(std::shared_ptr<Device> device, const std::string& folder,
                   const LoadOptions& options = {});
  ImageTextMatcher(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                   const LoadOptions& options = {});
  ~ImageTextMatcher();
  ImageTextMatcher(ImageTextMatcher&&) noexcept;
  ImageTextMatcher& operator=(ImageTextMatcher&&) noexcept;

  /// Texts are UTF-8; one that is longer than the model takes is refused. Throws ModelError.
  std::vector<PictureMatch> match(std::span<const Picture> pictures,
                                  std::span<const std::string> texts,
                                  const PictureBatchOptions& options = {});
  /// Of length 1, in the space of the pictures.
  std::vector<std::vector<float>> embed_texts(std::span<const std::string> texts);

  bool probabilities_add_up() const;
  const PictureStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
