#include "models/translation/encoder_decoder_architecture.h"

#include <fmt/format.h>

#include "models/adapters/weights_load.h"
#include "models/families/registry.h"
#include "models/networks/transformer_network.h"
#include "models/translation/search_memory.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

Extents extents_of(const EncoderDecoderConfig& config) {
  return {.vocabulary = config.target_vocabulary,
          .context = config.context,
          .encoder_layers = config.encoder.layers,
          .encoder_heads = config.encoder.heads,
          .decoder_layers = config.decoder.layers,
          .decoder_heads = config.decoder.heads,
          .cross_layers = config.decoder.layers,
          .cross_heads = config.decoder.heads};
}

EncoderDecoderConfig read_config(const Checkpoint& checkpoint, const EncoderDecoderFamily& family) {
  const ConfigReaders readers(checkpoint);
  return read_encoder_decoder_config(family, readers.config, readers.generation_or_null());
}

class EncoderDecoderArchitecture : public Architecture {
 public:
  EncoderDecoderArchitecture(const Checkpoint& checkpoint, const EncoderDecoderFamily& family)
      : Architecture(checkpoint), config_(read_config(checkpoint, family)) {}

  const GenerationConfig& generation() const override { return config_.generation; }
  Extents extents() const override { return extents_of(config_); }
  MemoryPrediction predict(const Capabilities& device, const ModelOptions& options) const override {
    MemoryPrediction plan = Architecture::predict(device, options);
    DeclaredWeights weights(&checkpoint());
    plan_search(plan, TransformerNetwork(config_, weights, options.activations), config_.generation,
                options);
    return plan;
  }

 private:
  DeclaredWeights declare() const override {
    return declared_weights<TransformerNetwork>(config_, checkpoint());
  }
  std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const override {
    return load_encoder_decoder(device, checkpoint(), config_, options);
  }

  EncoderDecoderConfig config_;
};

}  // namespace

EncoderDecoderConfig read_encoder_decoder_config(const Checkpoint& checkpoint) {
  const ModelFamily& family = family_of(checkpoint);
  if (!family.encoder_decoder)
    throw ModelError(
        checkpoint.path().string(),
        fmt::format("is a {} model, not an encoder-decoder Transformer", family.model_type), "");
  return read_config(checkpoint, *family.encoder_decoder);
}

std::unique_ptr<const Architecture> read_encoder_decoder(const Checkpoint& checkpoint,
                                                         const EncoderDecoderFamily& family) {
  return std::make_unique<const EncoderDecoderArchitecture>(checkpoint, family);
}

std::unique_ptr<EncoderDecoderModel> load_encoder_decoder(Device& device,
                                                          const Checkpoint& checkpoint,
                                                          const EncoderDecoderConfig& config,
                                                          const ModelOptions& options) {
  const std::string family = model_type(checkpoint);
  Weights weights =
      weights_of(device, declared_weights<TransformerNetwork>(config, checkpoint).table(),
                 checkpoint, family, options);
  LoadedWeights loaded(device, weights, &checkpoint);
  auto network = std::make_unique<TransformerNetwork>(config, loaded, options.activations);
  EncoderDecoderParts parts = {.family = family,
                               .generation = config.generation,
                               .extents = extents_of(config),
                               .half_precision = options.activations == DataType::kF16 ||
                                                 options.matrices == MatrixStorage::kF16,
                               .weights = std::move(weights),
                               .network = std::move(network)};
  return std::make_unique<EncoderDecoderModel>(device, std::move(parts), options.memory_limit);
}

}  // namespace mulciber
