// Architecture and memory plan of vision-language models, declared in vision_language_model.h.
#include <algorithm>

#include "models/vision/vision_language_model.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

class VisionLanguageArchitecture : public Architecture {
 public:
  VisionLanguageArchitecture(const Checkpoint& checkpoint, const VisionLanguageFamily& family)
      : Architecture(checkpoint), config_(read_vision_language_config(checkpoint, family)) {}

  const GenerationConfig& generation() const override { return config_.text.generation; }
  std::span<const char* const> end_pieces() const override { return config_.text.end_pieces; }
  const VisionLanguageConfig* sees() const override { return &config_; }
  Extents extents() const override {
    Extents extents = extents_of(config_.text);
    extents.encoder_layers = config_.vision.tower.layers;
    extents.encoder_heads = config_.vision.tower.heads;
    return extents;
  }
  MemoryPrediction predict(const Capabilities& device, const ModelOptions& options) const override {
    return predict_vision_language_memory(device, checkpoint(), config_, options);
  }

 private:
  DeclaredWeights declare() const override {
    DeclaredWeights weights(&checkpoint());
    decoder_network(config_.text, weights, config_.text.context, {});
    const ImageEmbedderNetwork embedder(config_, weights, DataType::kF32);
    return weights;
  }
  std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const override {
    return std::make_unique<VisionLanguageModel>(device, checkpoint(), config_, options);
  }

  VisionLanguageConfig config_;
};

}  // namespace

MemoryPrediction predict_vision_language_memory(const Capabilities& device,
                                                const Checkpoint& checkpoint,
                                                const VisionLanguageConfig& config,
                                                const ModelOptions& options) {
  MemoryPrediction predicted = predict_decoder_memory(device, checkpoint, config.text, options);
  predicted.weight_bytes += weight_bytes(
      table_to_read(declared_weights<ImageEmbedderNetwork>(config, checkpoint).table(), options),
      checkpoint, model_type(checkpoint), options.matrices);
  if (options.sequences == 0) return predicted;
  const VisionTower& tower = config.vision.tower;
  const uint64_t merged = uint64_t{config.connector.merged} * config.connector.merged;
  predicted.context_bytes +=
      uint64_t{tower.height} * tower.width_pixels * sizeof(uint32_t) +
      tower.tokens() * live_columns(tower) * size_of(options.activations) +
      config.rows() * (merged * tower.width + 2 * uint64_t{config.text.width}) * sizeof(float);
  return predicted;
}

std::unique_ptr<const Architecture> read_vision_language(const Checkpoint& checkpoint,
                                                         const VisionLanguageFamily& family) {
  return std::make_unique<const VisionLanguageArchitecture>(checkpoint, family);
}

}  // namespace mulciber
