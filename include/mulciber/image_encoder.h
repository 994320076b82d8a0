// Image embeddings, image classification and image-text matching, with vision transformers on any
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
#include "mulciber/image.h"
#include "mulciber/load_options.h"
#include "mulciber/open_model.h"

namespace mulciber {

class WeightsLoad;

/// Batches of images.
struct ImageBatchOptions {
  union {
    uint32_t batch_images = 16;  // most images in a batch
    uint32_t batch_pictures [[deprecated("use batch_images")]];
  };
  /// Called after every batch with the numbers of finished and of all images.
  std::function<void(size_t done, size_t total)> progress;
  /// Read between batches; once true, the call returns with the images that are complete.
  const std::atomic<bool>* cancel = nullptr;
};

/// Counts and times of the last call, and of loading where marked "load".
struct ImageStatistics {
  union {
    size_t images = 0;
    size_t pictures [[deprecated("use images")]];
  };
  size_t batches = 0;
  double load_seconds = 0;     // load: files to device
  double resize_seconds = 0;   // resizing to the model's input, on the CPU
  double prepare_seconds = 0;  // building and recording programs
  double run_seconds = 0;      // on the device, transfers included
  double total_seconds = 0;
  uint64_t weight_bytes = 0;            // load: on the device
  uint64_t predicted_device_bytes = 0;  // weights and activations, before allocating
  uint64_t peak_device_bytes = 0;       // most bytes allocated at once
};

/// Sizes of a vision transformer.
struct ImageExtents {
  uint32_t width = 0;  // floats in an embedding by the model's own pooling
  uint32_t state_width =
      0;  // floats in a token's hidden state, and in an embedding by mean pooling
  uint32_t image_width = 0, image_height = 0;  // pixels of the model's input
  bool any_size = false;                       // the model takes inputs of other sizes too
  uint32_t patch = 0;                          // pixels, the side of a patch
  uint32_t first_tokens = 0;                   // tokens before the patches, such as the class token
  uint32_t layers = 0, heads = 0;
  uint32_t text_tokens = 0;  // most tokens of a text for ImageTextMatcher; 0: it takes none
};

enum class ImagePoolingChoice {
  kModel,  // the model's own pooling: the class token, or an attention pooling head
  kMean,   // the mean of the hidden states of all patches
};

struct ImageEmbedOptions {
  ImagePoolingChoice pooling = ImagePoolingChoice::kModel;
  bool normalize = false;  // vectors of length 1
  ImageBatchOptions batch;
};

struct ImageVector {
  std::vector<float> values;
  bool complete = false;  // false: cancelled before this image was done
};

/// Hidden states of an image after the last layer.
struct ImageStates {
  std::vector<float> values;       // (tokens, width): tokens before the patches, then patches
  uint32_t tokens = 0, width = 0;  // width: ImageExtents::state_width
  uint32_t rows = 0, columns = 0;  // patches down and across
  bool complete = false;           // see ImageVector
};

/// Attention maps of an image, and their rollout through the layers.
struct ImageAttention {
  uint32_t layers = 0, heads = 0;
  uint32_t rows = 0, columns = 0;  // patches down and across
  /// (layers, heads, rows, columns): attention of the class token to each patch; for models without
  /// a class token, the mean over all patches that attend.
  std::vector<float> maps;
  /// (rows, columns): attention rollout, the product over layers of (A + I) / 2, where A is the
  /// mean of the layer's heads. Source: Abnar and Zuidema 2020, arXiv:2005.00928.
  std::vector<float> rollout;
  Image seen;  // the image as the model reads it: resized and cropped
};

/// A vision transformer (a Hugging Face folder with a preprocessor_config.json) on a device.
/// Embeddings of CLIP and SigLIP lie in the space that images and texts share.
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

  /// Embeddings of images, in their order. Throws ModelError when the model cannot take an image.
  std::vector<ImageVector> embed(std::span<const Image> images,
                                 const ImageEmbedOptions& options = {});
  ImageVector embed(const Image& image, const ImageEmbedOptions& options = {});
  /// Hidden states of images, in their order. Throws as embed().
  std::vector<ImageStates> states(std::span<const Image> images,
                                  const ImageBatchOptions& options = {});
  ImageStates states(const Image& image, const ImageBatchOptions& options = {});
  /// Attention maps of one image.
  ImageAttention attention(const Image& image);

  ImageExtents extents() const;
  const ImageStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;
  /// Frees device memory that is kept for later images: programs and activations for batches seen
  /// before. Weights and the memory of running tasks stay. Returns what Translator::trim() does.
  uint64_t trim();

 private:
  friend class ImageTask;    // mulciber/image_task.h
  friend class ModelLoader;  // mulciber/model_loader.h
  ImageEncoder(std::shared_ptr<Device> device, const OpenModel& model, const LoadOptions& options,
               std::shared_ptr<WeightsLoad> weights);
  struct Impl;
  std::shared_ptr<Impl> impl_;  // tasks keep it too
};

struct ImageLabels {
  /// Probabilities in the order of labels(): their sum is 1, or they are independent if
  /// several_labels().
  std::vector<float> probabilities;
  std::vector<float> logits;
  uint32_t best = 0;      // the most probable label
  bool complete = false;  // see ImageVector
};

/// A vision transformer with a classification head.
class MULCIBER_API ImageClassifier {
 public:
  /// Throws as ImageEncoder, and ModelError when the model has no classifier.
  ImageClassifier(std::shared_ptr<Device> device, const std::string& folder,
                  const LoadOptions& options = {});
  ImageClassifier(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                  const LoadOptions& options = {});
  ~ImageClassifier();
  ImageClassifier(ImageClassifier&&) noexcept;
  ImageClassifier& operator=(ImageClassifier&&) noexcept;

  std::vector<ImageLabels> classify(std::span<const Image> images,
                                    const ImageBatchOptions& options = {});
  ImageLabels classify(const Image& image, const ImageBatchOptions& options = {});
  ImageAttention attention(const Image& image);

  const std::vector<std::string>& labels() const;
  bool several_labels() const;
  ImageExtents extents() const;
  const ImageStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;
  uint64_t trim();  // see ImageEncoder::trim()

 private:
  friend class ModelLoader;  // mulciber/model_loader.h
  ImageClassifier(std::shared_ptr<Device> device, const OpenModel& model,
                  const LoadOptions& options, std::shared_ptr<WeightsLoad> weights);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct ImageMatch {
  /// One probability for each text: CLIP's add up to 1, SigLIP's are independent.
  std::vector<float> probabilities;
  std::vector<float> logits;  // scaled cosines
  uint32_t best = 0;
  bool complete = false;  // see ImageVector
};

/// A model with one embedding space for images and texts (CLIP, SigLIP). It rates how well texts
/// fit an image, zero-shot labels included.
class MULCIBER_API ImageTextMatcher {
 public:
  /// Throws as ImageEncoder, and ModelError when the model has no text encoder.
  ImageTextMatcher(std::shared_ptr<Device> device, const std::string& folder,
                   const LoadOptions& options = {});
  ImageTextMatcher(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                   const LoadOptions& options = {});
  ~ImageTextMatcher();
  ImageTextMatcher(ImageTextMatcher&&) noexcept;
  ImageTextMatcher& operator=(ImageTextMatcher&&) noexcept;

  /// Rates all texts for each image. texts: UTF-8. Throws ModelError when a text has more tokens
  /// than the model takes.
  std::vector<ImageMatch> match(std::span<const Image> images, std::span<const std::string> texts,
                                const ImageBatchOptions& options = {});
  /// Text embeddings of length 1, in the space of the image embeddings.
  std::vector<std::vector<float>> embed_texts(std::span<const std::string> texts);
  /// Image embeddings of length 1, in their order: those that match() compares with texts.
  std::vector<ImageVector> embed_images(std::span<const Image> images,
                                        const ImageBatchOptions& options = {});

  bool probabilities_add_up() const;
  ImageExtents extents() const;
  const ImageStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;
  uint64_t trim();  // see ImageEncoder::trim()

 private:
  friend class ModelLoader;  // mulciber/model_loader.h
  ImageTextMatcher(std::shared_ptr<Device> device, const OpenModel& model,
                   const LoadOptions& options, std::shared_ptr<WeightsLoad> weights);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Deprecated names of version 0.1.
using PictureBatchOptions [[deprecated("use ImageBatchOptions")]] = ImageBatchOptions;
using PictureStatistics [[deprecated("use ImageStatistics")]] = ImageStatistics;
using PicturePoolingChoice [[deprecated("use ImagePoolingChoice")]] = ImagePoolingChoice;
using PictureEmbedOptions [[deprecated("use ImageEmbedOptions")]] = ImageEmbedOptions;
using PictureVector [[deprecated("use ImageVector")]] = ImageVector;
using PictureAttention [[deprecated("use ImageAttention")]] = ImageAttention;
using PictureLabels [[deprecated("use ImageLabels")]] = ImageLabels;
using PictureMatch [[deprecated("use ImageMatch")]] = ImageMatch;

}  // namespace mulciber
