// What stands in a picture, as text: a vision transformer and a decoder that attends to its
// patches, on any Vulkan device. No Vulkan headers are needed. Errors are the types of
// mulciber/error.h; nothing is printed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mulciber/image_encoder.h"

namespace mulciber {

struct PictureReadOptions {
  uint32_t beams = 1;       // 1: greedy search
  uint32_t max_tokens = 0;  // 0: as many as the model can be fed
  bool attention = false;   // PictureText::maps and seen; a pass of its own for each picture
  /// Called after every picture with the pictures done so far and their number in all.
  std::function<void(size_t done, size_t total)> progress;
  /// Looked at between tokens; once true, the call returns with what is complete.
  const std::atomic<bool>* cancel = nullptr;
};

struct PictureText {
  std::string text;
  std::vector<uint32_t> ids;        // without the end
  std::vector<std::string> tokens;  // each as text
  double log_probability = 0;       // the mean over the tokens and the end
  /// (layers, heads, tokens, rows, columns): which patches each token attends to. The rest of a
  /// token's weight is on tokens that stand for no patch.
  std::vector<float> maps;
  uint32_t layers = 0, heads = 0, rows = 0, columns = 0;
  Picture seen;           // the picture as the model reads it
  bool complete = false;  // false: cancelled before this picture was done
};

/// A VisionEncoderDecoderModel (a Hugging Face folder): a ViT or DeiT, and the decoder of TrOCR.
class MULCIBER_API PictureReader {
 public:
  /// Throws ModelError when the folder does not hold such a model or its files disagree,
  /// DeviceError when the model does not fit the device's memory.
  PictureReader(std::shared_ptr<Device> device, const std::string& folder,
                const LoadOptions& options = {});
  PictureReader(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                const LoadOptions& options = {});
  ~PictureReader();
  PictureReader(PictureReader&&) noexcept;
  PictureReader& operator=(PictureReader&&) noexcept;

  /// Texts of pictures, in their order. Throws ModelError for options that do not fit the model.
  std::vector<PictureText> read(std::span<const Picture> pictures,
                                const PictureReadOptions& options = {});
  PictureText read(const Picture& picture, const PictureReadOptions& options = {});

  const PictureStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
