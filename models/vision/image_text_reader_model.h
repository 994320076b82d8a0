// A model that writes the text of an image, on a device.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/core/architecture.h"
#include "models/families/image_text_reader_config.h"
#include "models/networks/image_text_reader_network.h"
#include "models/translation/memory_texts.h"

namespace mulciber {

/// An image encoder with a text decoder. Source: Xu et al. 2015, arXiv:1502.03044, with a
/// Transformer at both ends.
class ImageTextReaderModel : public Model {
 public:
  /// Throws ModelError when configuration and tensors disagree, DeviceError when the weights do not
  /// fit.
  ImageTextReaderModel(Device& device, const Checkpoint& checkpoint,
                       const ImageTextReaderConfig& config, const ModelOptions& options);
  ~ImageTextReaderModel() override;

  std::string family() const override { return "vision-encoder-decoder"; }
  bool half_precision() const override { return half_precision_; }
  Extents extents() const override;
  uint64_t weight_bytes() const override { return weights_.bytes(); }
  /// Inputs: pixel_values (1, channels, height, width), decoder_input_ids (1, n). Outputs: logits,
  /// encoder_last_hidden_state, cross_attentions.
  NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) override;
  ImageTextReaderModel* reads() override { return this; }

  const ImageTextReaderConfig& config() const { return config_; }
  /// Encodes an image of the size that the model takes, one word for each pixel whose lowest byte
  /// is channel 0. texts() is about this image from then on.
  void see(std::span<const uint32_t> pixels, const ImageNormalization& normalization);
  MemoryTexts& texts() { return texts_; }
  /// Frees programs and activations that are kept for later images.
  void trim();

 private:
  struct Seeing;
  Seeing& seeing(DataType pixels, const ImageNormalization& normalization);
  std::vector<Tensor> allocate_memories();

  Device& device_;
  ImageTextReaderConfig config_;
  bool half_precision_;
  uint64_t memory_limit_;
  Weights weights_;
  ImageTextReaderNetwork network_;
  std::vector<Buffer> kept_;
  std::vector<Tensor> memories_;  // by layer: (1, tokens of the image, columns)
  MemoryTexts texts_;
  std::unique_ptr<Seeing> seeing_;  // most recently used
};

Extents extents_of(const ImageTextReaderConfig& config);

/// An Architecture, by which the model is planned and loaded. Throws ModelError.
std::unique_ptr<const Architecture> read_image_text_reader(const Checkpoint& checkpoint);

}  // namespace mulciber
