// A model that writes the text of an image, on a device.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "models/core/architecture.h"
#include "models/families/picture_reader_config.h"
#include "models/networks/picture_reader_weights.h"
#include "models/networks/vision_network.h"
#include "models/translation/memory_texts.h"

namespace mulciber {

/// An image encoder with a text decoder. Source: Xu et al. 2015, arXiv:1502.03044, with a
/// Transformer at both ends.
class PictureReaderModel : public Model {
 public:
  /// Throws ModelError when configuration and tensors disagree, DeviceError when the weights do not
  /// fit.
  PictureReaderModel(Device& device, const Checkpoint& checkpoint,
                     const PictureReaderConfig& config, const ModelOptions& options);
  ~PictureReaderModel() override;

  std::string family() const override { return "vision-encoder-decoder"; }
  bool half_precision() const override { return half_precision_; }
  Extents extents() const override;
  uint64_t weight_bytes() const override { return weights_.bytes(); }
  /// Inputs: pixel_values (1, channels, height, width), decoder_input_ids (1, n). Outputs: logits,
  /// encoder_last_hidden_state, cross_attentions.
  NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) override;
  PictureReaderModel* reads() override { return this; }

  const PictureReaderConfig& config() const { return config_; }
  /// Encodes an image of the size that the model takes, one word for each pixel whose lowest byte
  /// is channel 0. texts() is about this image from then on.
  void see(std::span<const uint32_t> pixels, const PictureNormalization& normalization);
  MemoryTexts& texts() { return texts_; }

 private:
  struct Seeing;
  PictureSize size() const;
  Seeing& seeing(DataType pixels, const PictureNormalization& normalization);
  std::vector<Tensor> allocate_memories();

  Device& device_;
  PictureReaderConfig config_;
  bool half_precision_;
  uint64_t memory_limit_;
  Weights weights_;
  PictureNetwork pictures_;
  TextDecoder decoder_;
  std::vector<Buffer> kept_;
  std::vector<Tensor> memories_;  // by layer: (1, tokens of the image, columns)
  MemoryTexts texts_;
  std::unique_ptr<Seeing> seeing_;  // most recently used
};

Extents extents_of(const PictureReaderConfig& config);

/// An Architecture, by which the model is planned and loaded. Throws ModelError.
std::unique_ptr<const Architecture> read_picture_reader(const Checkpoint& checkpoint);

}  // namespace mulciber
