#include "models/registry.h"
#include "models/text_encoder_model.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

class TextEncoderArchitecture : public Architecture {
 public:
  TextEncoderArchitecture(const Checkpoint& checkpoint, const EncoderFamily& family)
      : checkpoint_(checkpoint), config_(family.read(ConfigReaders(checkpoint).config)) {}

  const GenerationConfig& generation() const override { return config_.generation; }
  const EncoderConfig* encoder() const override { return &config_; }
  Extents extents() const override { return extents_of(config_); }
  MemoryPrediction predict(const Capabilities&, const ModelOptions& options) const override {
    return predict_encoder_memory(checkpoint_, config_, options);
  }
  std::unique_ptr<Model> load(Device& device, const ModelOptions& options) const override {
    return std::make_unique<TextEncoderModel>(device, checkpoint_, config_, options);
  }

 private:
  const Checkpoint& checkpoint_;
  EncoderConfig config_;
};

}  // namespace

MemoryPrediction predict_encoder_memory(const Checkpoint& checkpoint, const EncoderConfig& config,
                                        const ModelOptions& options) {
  MemoryPrediction plan = {
      .weight_bytes = mulciber::weight_bytes(text_encoder_weight_table(config, checkpoint),
                                             checkpoint, model_type(checkpoint), options.matrices)};
  for (const ComputedAngles& angles : computed_angles(config))
    plan.weight_bytes += aligned_weight_bytes(angles.shape.elements() * sizeof(float));
  return plan;
}

Extents extents_of(const EncoderConfig& config) {
  return {.context = config.context,
          .encoder_layers = static_cast<uint32_t>(config.layers.size()),
          .encoder_heads = config.heads};
}

std::unique_ptr<const Architecture> read_text_encoder(const Checkpoint& checkpoint) {
  return std::make_unique<const TextEncoderArchitecture>(checkpoint,
                                                         *family_of(checkpoint).encoder);
}

}  // namespace mulciber
