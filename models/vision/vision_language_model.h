// A decoder-only model that sees images, on a device.
#pragma once

#include <memory>
#include <optional>

#include "models/generation/decoder_model.h"
#include "models/generation/image_embedder.h"
#include "models/networks/connector_network.h"

namespace mulciber {

/// A vision tower, a connector and a decoder-only network. Source: Liu et al. 2023,
/// arXiv:2304.08485.
class VisionLanguageModel : public DecoderModel, public ImageEmbedder {
 public:
  /// Throws as DecoderModel does.
  VisionLanguageModel(Device& device, const Checkpoint& checkpoint,
                      const VisionLanguageConfig& config, const ModelOptions& options);
  ~VisionLanguageModel() override;

  /// Runs inputs of DecoderModel, in one row, with pixel_values (images, channels, height, width),
  /// or (1, images, ...), whose embeddings stand where input_ids has the image token. Outputs are
  /// those of DecoderModel, and image_features (rows, width).
  NamedArrays forward(const NamedArrays& inputs, std::span<const std::string> wanted) override;
  EncodingModel* encodes_text() override { return nullptr; }
  ImageEmbedder* embeds_images() override { return this; }
  std::vector<float> embed(std::span<const uint32_t> pixels,
                           const ImageNormalization& normalization) override;

 private:
  struct Seeing;
  Seeing& seeing(DataType pixels, const ImageNormalization& normalization);
  /// The embeddings of pixels in any form.
  std::vector<float> run(Seeing& program, std::span<const std::byte> pixels);

  VisionLanguageConfig config_;
  DataType activations_;
  ImageEmbedderNetwork embedder_;
  std::unique_ptr<Seeing> seeing_;  // most recently used
};

/// Device memory of the weights of both parts, of the contexts that `options` ask for, and of an
/// image that is being embedded.
MemoryPrediction predict_vision_language_memory(const Capabilities& device,
                                                const Checkpoint& checkpoint,
                                                const VisionLanguageConfig& config,
                                                const ModelOptions& options);
std::unique_ptr<const Architecture> read_vision_language(const Checkpoint& checkpoint,
                                                         const VisionLanguageFamily& family);

}  // namespace mulciber
