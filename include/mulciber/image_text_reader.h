// Optical character recognition: a vision transformer and a decoder that attends to its patches, on
// any Vulkan device. No Vulkan headers are needed. Errors are the types of mulciber/error.h;
// nothing is printed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mulciber/image_encoder.h"

namespace mulciber {

struct ImageReadOptions {
  uint32_t beams = 1;       // 1: greedy search
  uint32_t max_tokens = 0;  // 0: as many as the model has positions
  bool attention = false;   // fill ImageText::maps and seen, by an extra pass for each image
  /// Called after every image with the numbers of finished and of all images.
  std::function<void(size_t done, size_t total)> progress;
  /// Read between tokens; once true, the call returns with the images that are complete.
  const std::atomic<bool>* cancel = nullptr;
};

struct ImageText {
  std::string text;
  std::vector<uint32_t> ids;        // without the end-of-text token
  std::vector<std::string> tokens;  // the text of each token
  double log_probability = 0;       // the mean over the tokens and the end-of-text token
  /// (layers, heads, tokens, rows, columns): cross-attention of each token to each patch. The rest
  /// of a token's weight lies on the vision transformer's tokens that are not patches.
  std::vector<float> maps;
  uint32_t layers = 0, heads = 0, rows = 0, columns = 0;
  Image seen;             // the image as the model reads it
  bool complete = false;  // false: cancelled before this image was done
};

/// A VisionEncoderDecoderModel (a Hugging Face folder): a ViT or DeiT with TrOCR's decoder.
class MULCIBER_API ImageTextReader {
 public:
  /// Throws ModelError when the folder does not hold such a model or its files disagree,
  /// DeviceError when the model does not fit the device's memory.
  ImageTextReader(std::shared_ptr<Device> device, const std::string& folder,
                  const LoadOptions& options = {});
  ImageTextReader(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                  const LoadOptions& options = {});
  ~ImageTextReader();
  ImageTextReader(ImageTextReader&&) noexcept;
  ImageTextReader& operator=(ImageTextReader&&) noexcept;

  /// Reads the texts of images, in their order. Throws ModelError for options that do not fit the
  /// model.
  std::vector<ImageText> read(std::span<const Image> images, const ImageReadOptions& options = {});
  ImageText read(const Image& image, const ImageReadOptions& options = {});

  const ImageStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;
  uint64_t trim();  // see ImageEncoder::trim()

 private:
  friend class ModelLoader;  // mulciber/model_loader.h
  ImageTextReader(std::shared_ptr<Device> device, const OpenModel& model,
                  const LoadOptions& options, std::shared_ptr<WeightsLoad> weights);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Deprecated names of version 0.1.
using PictureReadOptions [[deprecated("use ImageReadOptions")]] = ImageReadOptions;
using PictureText [[deprecated("use ImageText")]] = ImageText;
using PictureReader [[deprecated("use ImageTextReader")]] = ImageTextReader;

}  // namespace mulciber
