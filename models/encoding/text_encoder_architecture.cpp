// Architecture of encoder-only models; models/encoding/text_encoder_model.h declares its reader.
#include "models/encoding/text_encoder_model.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

class TextEncoderArchitecture : public Architecture {
 public:
  TextEncoderArchitecture(const Checkpoint& checkpoint, const EncoderFamily& family)
      : Architecture(checkpoint), config_(read_encoder_config(checkpoint, family)) {}

  const GenerationConfig& generation() const override { return config_.generation; }
  const EncoderConfig* encoder() const override { return &config_; }
  Extents extents() const override { return extents_of(config_); }

 private:
  DeclaredWeights declare() const override {
    return declared_weights<TextEncoderNetwork>(config_, checkpoint());
  }
  std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const override {
    return std::make_unique<TextEncoderModel>(device, checkpoint(), config_, options);
  }

  EncoderConfig config_;
};

}  // namespace

Extents extents_of(const EncoderConfig& config) {
  return {.context = config.context,
          .encoder_layers = static_cast<uint32_t>(config.layers.size()),
          .encoder_heads = config.heads};
}

std::unique_ptr<const Architecture> read_text_encoder(const Checkpoint& checkpoint,
                                                      const EncoderFamily& family) {
  return std::make_unique<const TextEncoderArchitecture>(checkpoint, family);
}

}  // namespace mulciber
