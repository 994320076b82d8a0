#include "models/generation/decoder_architecture.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/adapters/adapter_stack.h"
#include "models/core/device_weights.h"
#include "models/families/registry.h"
#include "models/generation/decoder_model.h"
#include "models/generation/sequence_decoding.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

class DecoderArchitecture : public Architecture {
 public:
  DecoderArchitecture(const Checkpoint& checkpoint, const DecoderFamily& family)
      : Architecture(checkpoint), config_(read_decoder_config(checkpoint, family)) {}

  const GenerationConfig& generation() const override { return config_.generation; }
  std::span<const char* const> end_pieces() const override { return config_.end_pieces; }
  Extents extents() const override { return extents_of(config_); }
  MemoryPrediction predict(const Capabilities& device, const ModelOptions& options) const override {
    return predict_decoder_memory(device, checkpoint(), config_, options);
  }

 private:
  DeclaredWeights declare() const override { return declare_decoder(config_, config_.context); }
  std::unique_ptr<Model> make(Device& device, const ModelOptions& options) const override {
    return std::make_unique<DecoderModel>(device, checkpoint(), config_, options);
  }

  DecoderConfig config_;
};

}  // namespace

std::shared_ptr<const AdapterStack> stacked_adapters(const Checkpoint& checkpoint,
                                                     const DecoderConfig& config,
                                                     const ModelOptions& options) {
  if (options.merge_adapters || options.adapters.empty()) return nullptr;
  const std::vector<AdapterTable> others = other_adapter_tables(config);
  return std::make_shared<const AdapterStack>(
      decoder_weight_table(config), options.adapters, checkpoint,
      AdapterStack::Options{.half = options.matrices == MatrixStorage::kF16,
                            .takes = takes_adapters,
                            .others = others,
                            .other_forms = true});
}

NetworkTypes network_types(const Capabilities& device, const ModelOptions& options,
                           const AdapterStack* adapters) {
  if (options.fast_activations && options.activations != DataType::kF32)
    throw ModelError("activations",
                     "in blocks of 8-bit integers are made of activations in 32 bits",
                     "ask for fast activations or for halves, not for both");
  // Software drivers have no fast instruction either; they use the products to show what precision
  // is lost.
  const bool dots =
      device.has(kFastIntegerDot) || device.has(kFastMixedDot) || device.has(kIntegerDot | kCpu);
  return {
      .activations = options.activations,
      .cache = cache_type(options),
      .integer_products = options.fast_activations && dots,
      .folded_norms = options.folded_norms.value_or(norms_fold(device)),
      .folded_appends = options.folded_appends.value_or(device.has(kGpu)),
      .adapters = adapters ? std::make_shared<const NetworkAdapters>(adapters->beside()) : nullptr};
}

DecoderConfig read_decoder_config(const Checkpoint& checkpoint) {
  const ModelFamily& family = family_of(checkpoint);
  if (!family.decoder)
    throw ModelError(checkpoint.path().string(),
                     fmt::format("is a {} model, not a decoder-only one", family.model_type), "");
  return read_decoder_config(checkpoint, *family.decoder);
}

std::unique_ptr<const Architecture> read_decoder(const Checkpoint& checkpoint,
                                                 const DecoderFamily& family) {
  return std::make_unique<const DecoderArchitecture>(checkpoint, family);
}

Extents extents_of(const DecoderConfig& config) {
  return {.vocabulary = config.vocabulary,
          .context = config.context,
          .decoder_layers = static_cast<uint32_t>(config.layers.size()),
          .decoder_heads = config.attention.heads};
}

uint32_t context_of(const DecoderConfig& config, const ModelOptions& options) {
  return options.context > 0 ? std::min(options.context, config.context) : config.context;
}

MemoryPrediction predict_decoder_memory(const Capabilities& device, const Checkpoint& checkpoint,
                                        const DecoderConfig& config, const ModelOptions& options) {
  const uint32_t context = context_of(config, options);
  const DeclaredWeights declared = declare_decoder(config, context);
  MemoryPrediction predicted;
  predicted.weight_bytes = declared.computed_bytes();
  PlannedWeights::Segments segments;
  for (const WeightSpec& spec : table_to_read(declared.table(), options)) {
    segments[spec.name] =
        weight_segments(spec, checkpoint, model_type(checkpoint), options.matrices);
    for (const WeightSegment& segment : segments[spec.name])
      predicted.weight_bytes += aligned_weight_bytes(segment.bytes());
  }
  const auto adapters = stacked_adapters(checkpoint, config, options);
  if (adapters) predicted.weight_bytes += adapters->bytes();
  if (options.sequences == 0) return predicted;
  PlannedWeights weights(segments);
  const DecoderNetwork network =
      decoder_network(config, weights, context, network_types(device, options, adapters.get()));
  predicted.context_bytes = SequenceSlots::predict_bytes(
      device, network, conversation_slots(device, network, options.sequences, context));
  uint64_t token_bytes = 0, state_bytes = 0;
  for (const LayerCache& cache : layer_caches(network))
    (cache.keeps_tokens() ? token_bytes : state_bytes) += cache.bytes(1);
  const uint64_t contexts = uint64_t{options.sequences} * context;
  const uint64_t tokens = options.cache_tokens > 0 ? options.cache_tokens : contexts;
  predicted.key_value_bytes = tokens * token_bytes;
  predicted.context_bytes += predicted.key_value_bytes - contexts * token_bytes;
  predicted.key_value_bytes += options.sequences * state_bytes;
  return predicted;
}

}  // namespace mulciber
