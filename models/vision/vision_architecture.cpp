// Architecture of vision transformers; models/vision/vision_model.h declares its reader.
#include "models/vision/vision_model.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

class VisionArchitecture : public Architecture {
 public:
  VisionArchitecture(const Checkpoint& checkpoint, const VisionFamily& family)
      : Architecture(checkpoint), config_(family.read(ConfigReaders(checkpoint).config)) {}

  const GenerationConfig& generation() const override { return config_.generation; }
  const VisionConfig* vision() const override { return &config_; }
  Extents extents() const override { return extents_of(config_); }

 private:
  DeclaredWeights declare() const override {
    return declared_weights<VisionNetwork>(config_, checkpoint());
  }
  std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const override {
    return std::make_unique<VisionModel>(device, checkpoint(), config_, options);
  }

  VisionConfig config_;
};

}  // namespace

Extents extents_of(const VisionConfig& config) {
  return {.context = config.texts ? config.texts->context : 0,
          .encoder_layers = config.tower.layers,
          .encoder_heads = config.tower.heads};
}

std::unique_ptr<const Architecture> read_vision(const Checkpoint& checkpoint,
                                                const VisionFamily& family) {
  return std::make_unique<const VisionArchitecture>(checkpoint, family);
}

}  // namespace mulciber
