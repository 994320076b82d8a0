#include "models/translation/recurrent_translation.h"

#include "models/adapters/weights_load.h"
#include "models/networks/recurrent_network.h"
#include "models/translation/search_memory.h"

namespace mulciber {
namespace {

std::string family_of(const RecurrentConfig& config) {
  return config.additive ? "bahdanau" : "luong";
}

Extents extents_of(const RecurrentConfig& config) {
  return {.vocabulary = config.vocabulary,
          .context = config.context,
          .cross_layers = 1,
          .cross_heads = 1};
}

EncoderDecoderParts load_parts(Device& device, const Checkpoint& checkpoint,
                               const RecurrentConfig& config, const ModelOptions& options) {
  Weights weights =
      weights_of(device, declare_recurrent(config).table(), checkpoint, family_of(config), options);
  LoadedWeights loaded(device, weights);
  auto network = std::make_unique<RecurrentNetwork>(config, loaded);
  return {.family = family_of(config),
          .generation = config.generation,
          .extents = extents_of(config),
          .half_precision = options.matrices == MatrixStorage::kF16,
          .weights = std::move(weights),
          .network = std::move(network)};
}

class RecurrentArchitecture : public Architecture {
 public:
  explicit RecurrentArchitecture(const Checkpoint& checkpoint)
      : Architecture(checkpoint), config_(read_recurrent_config(checkpoint)) {}

  const GenerationConfig& generation() const override { return config_.generation; }
  Extents extents() const override { return extents_of(config_); }
  MemoryPrediction predict(const Capabilities& device, const ModelOptions& options) const override {
    MemoryPrediction plan = Architecture::predict(device, options);
    DeclaredWeights weights;
    plan_search(plan, RecurrentNetwork(config_, weights), config_.generation, options);
    return plan;
  }

 private:
  DeclaredWeights declare() const override { return declare_recurrent(config_); }
  std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const override {
    return std::make_unique<RecurrentTranslation>(device, checkpoint(), config_, options);
  }

  RecurrentConfig config_;
};

}  // namespace

RecurrentTranslation::RecurrentTranslation(Device& device, const Checkpoint& checkpoint,
                                           const RecurrentConfig& config,
                                           const ModelOptions& options)
    : EncoderDecoderModel(device, load_parts(device, checkpoint, config, options),
                          options.memory_limit) {}

std::unique_ptr<const Architecture> read_recurrent_translation(const Checkpoint& checkpoint) {
  return std::make_unique<const RecurrentArchitecture>(checkpoint);
}

}  // namespace mulciber
