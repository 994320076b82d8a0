#include "models/generation/decoder_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "models/adapters/adapter_stack.h"
#include "models/adapters/weights_load.h"
#include "models/core/padded_ids.h"
#include "models/families/registry.h"
#include "models/generation/decoding.h"
#include "models/generation/sequence_decoding.h"
#include "models/generation/traced_pass.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

Weights load_weights(Device& device, const Checkpoint& checkpoint, const std::string& family,
                     const DecoderConfig& config, const ModelOptions& options,
                     const AdapterStack* adapters, const WeightTable& beside) {
  WeightTable table = decoder_weight_table(config);
  table.insert(table.end(), beside.begin(), beside.end());
  Weights weights = weights_of(device, table, checkpoint, family, options);
  if (!adapters) return weights;
  for (const auto& [weight, update] : adapters->beside().updates) {
    weights.add(device, lora_down(weight), update.down, adapters->down(weight), update.type);
    weights.add(device, lora_up(weight), update.up, adapters->up(weight), update.type);
  }
  return weights;
}

/// Builds the network, which adds its computed weights to `weights`.
DecoderNetwork load_network(Device& device, Weights& weights, const DecoderConfig& config,
                            const ModelOptions& options, const AdapterStack* adapters) {
  LoadedWeights loaded(device, weights);
  return decoder_network(config, loaded, context_of(config, options),
                         network_types(device.capabilities(), options, adapters));
}

/// Where the tokens of each row begin. Padding stands before them.
std::vector<uint32_t> first_tokens(const std::string& family, const NamedArrays& inputs,
                                   PaddedIds& ids) {
  std::vector<uint32_t> first(ids.rows, 0);
  if (inputs.count("attention_mask") == 0) return first;
  const NamedArray& mask = matrix_input(family, inputs, "attention_mask");
  const std::string where = family + " input `attention_mask`";
  if (mask.shape != std::vector<uint64_t>{ids.rows, ids.length})
    throw ModelError(where, "does not have the shape of input_ids", "");
  for (uint32_t row = 0; row < ids.rows; ++row) {
    const auto begin = mask.values.begin() + row * ids.length, end = begin + ids.length;
    const auto real = std::find_if(begin, end, [](double value) { return value != 0; });
    const auto after = std::find(real, end, 0.0);
    if (real == end || std::any_of(after, end, [](double value) { return value != 0; }))
      throw ModelError(where, fmt::format("row {} has no tokens, or padding between them", row),
                       "pad on one side");
    first[row] = static_cast<uint32_t>(real - begin);
    ids.lengths[row] = static_cast<uint32_t>(after - real);
  }
  return first;
}

void check_positions(const std::string& family, const NamedArrays& inputs, const PaddedIds& ids,
                     std::span<const uint32_t> first) {
  if (inputs.count("position_ids") == 0) return;
  const NamedArray& positions = matrix_input(family, inputs, "position_ids");
  if (positions.shape != std::vector<uint64_t>{ids.rows, ids.length})
    throw ModelError(family + " input `position_ids`", "does not have the shape of input_ids", "");
  for (uint32_t row = 0; row < ids.rows; ++row) {
    for (uint32_t i = 0; i < ids.lengths[row]; ++i) {
      if (positions.values[row * ids.length + first[row] + i] != i)
        throw ModelError(family + " input `position_ids`",
                         fmt::format("row {} does not count its tokens from 0", row), "");
    }
  }
}

std::vector<float> factors_of(const std::string& family, const DecoderConfig& config,
                              std::span<const HeadNumber> masked) {
  const size_t layers = config.layers.size();
  std::vector<float> factors(masked.empty() ? 0 : layers * config.attention.heads, 1.0f);
  for (const HeadNumber& number : masked) {
    if (number.layer >= layers || number.head >= config.attention.heads)
      throw ModelError(fmt::format("head {} of layer {}", number.head, number.layer),
                       "is not there",
                       fmt::format("this {} model has {} layers of {} heads, counted from 0",
                                   family, layers, config.attention.heads));
    factors[number.layer * config.attention.heads + number.head] = 0;
  }
  return factors;
}

/// Moves the rows of (B, length, width) back to where they stood behind padding.
void shift_back(std::vector<double>& values, const PaddedIds& ids, std::span<const uint32_t> first,
                uint64_t width) {
  for (uint32_t row = 0; row < ids.rows; ++row) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * ids.length * width);
    std::rotate(begin, begin + static_cast<std::ptrdiff_t>((ids.length - first[row]) * width),
                begin + static_cast<std::ptrdiff_t>(ids.length * width));
  }
}

}  // namespace

DecoderModel::DecoderModel(Device& device, const Checkpoint& checkpoint,
                           const DecoderConfig& config, const ModelOptions& options)
    : DecoderModel(device, checkpoint, config, options, {},
                   predict_decoder_memory(device.capabilities(), checkpoint, config, options)) {}

DecoderModel::DecoderModel(Device& device, const Checkpoint& checkpoint, DecoderConfig config,
                           const ModelOptions& options, const WeightTable& beside,
                           MemoryPrediction plan)
    : device_(device),
      family_(model_type(checkpoint)),
      memory_limit_(options.memory_limit),
      config_(std::move(config)),
      half_precision_(options.activations == DataType::kF16 ||
                      options.matrices == MatrixStorage::kF16),
      memory_plan_(plan),
      adapters_(stacked_adapters(checkpoint, config_, options)),
      weights_(
          load_weights(device, checkpoint, family_, config_, options, adapters_.get(), beside)),
      network_(load_network(device, weights_, config_, options, adapters_.get())),
      vectors_(device, network_, config_, family_) {
  network_.head_masks = factors_of(family_, config_, options.masked_heads);
  network_.weights = &weights_;
}

Extents DecoderModel::extents() const {
  Extents extents = extents_of(config_);
  extents.context = network_.context;
  return extents;
}

NamedArrays DecoderModel::forward(const NamedArrays& inputs, std::span<const std::string> wanted) {
  return forward_given(inputs, wanted, {});
}

NamedArrays DecoderModel::forward_given(const NamedArrays& inputs,
                                        std::span<const std::string> wanted,
                                        std::span<const GivenRows> given) {
  PaddedIds ids =
      read_padded_ids(family_, inputs, "input_ids", config_.vocabulary, network_.context);
  const std::vector<uint32_t> first = first_tokens(family_, inputs, ids);
  check_positions(family_, inputs, ids, first);
  // Padding goes behind the tokens, where nothing sees it.
  for (uint32_t row = 0; row < ids.rows; ++row) {
    const auto begin = ids.ids.begin() + row * ids.length;
    std::rotate(begin, begin + first[row], begin + ids.length);
  }
  TracedPass pass(device_, network_, ids.rows, ids.length,
                  {.logits = true,
                   .states = wants(wanted, "hidden_states"),
                   .attentions = wants(wanted, "attentions"),
                   .mixed = !given.empty()});
  if (given.empty())
    pass.run(ids.ids);
  else
    pass.run(ids.ids, given);

  const uint64_t rows = ids.rows, length = ids.length;
  NamedArrays results;
  const auto append = [&](NamedArray& to, const std::string& name, uint64_t width,
                          double scale = 1) {
    const std::vector<float> values = pass.read(name);
    std::vector<double> wide(values.begin(), values.end());
    for (double& value : wide) value *= scale;
    shift_back(wide, ids, first, width);
    to.values.insert(to.values.end(), wide.begin(), wide.end());
  };
  NamedArray& logits = results["logits"] = {{rows, length, config_.vocabulary}, {}};
  append(logits, "output.logits", config_.vocabulary);
  const uint64_t layers = config_.layers.size();
  if (wants(wanted, "hidden_states")) {
    NamedArray& states = results["hidden_states"] = {{layers + 1, rows, length, config_.width}, {}};
    const double scale = network_.stream_scale;
    // For Mamba, transformers gives the output of every layer, without the embedding.
    const bool outputs_alone = config_.state_space.has_value();
    if (!outputs_alone) append(states, "embedding.output", config_.width, scale);
    for (uint64_t i = 0; i + (outputs_alone ? 0 : 1) < layers; ++i)
      append(states, fmt::format("layers.{}.output", i), config_.width, scale);
    append(states, "output.normalized", config_.width);
  }
  const bool padded =
      std::any_of(first.begin(), first.end(), [](uint32_t padding) { return padding > 0; });
  if (wants(wanted, "attentions") && !padded && !config_.state_space) {
    NamedArray& maps =
        results["attentions"] = {{layers, rows, config_.attention.heads, length, length}, {}};
    for (uint64_t i = 0; i < layers; ++i) {
      const std::vector<float> values = pass.read_map(i);
      maps.values.insert(maps.values.end(), values.begin(), values.end());
    }
  }
  keep_wanted(results, wanted);
  return results;
}

std::vector<float> DecoderModel::attention(std::span<const uint32_t> ids,
                                           std::span<const float> adapters) {
  const auto length = static_cast<uint32_t>(ids.size());
  // With room for the whole context, LongRoPE has the same angles as in such a sequence.
  const uint32_t original = network_.decoder.original_context();
  TracedPass pass(device_, network_, 1, length, {.attentions = true},
                  original > 0 ? original + 1 : 0);
  pass.run(ids, adapters);
  std::vector<float> maps;
  maps.reserve(config_.layers.size() * config_.attention.heads * length * length);
  for (uint64_t i = 0; i < config_.layers.size(); ++i) {
    const std::vector<float> layer = pass.read_map(i);
    maps.insert(maps.end(), layer.begin(), layer.end());
  }
  return maps;
}

std::unique_ptr<TextAttention> DecoderModel::start_attention(std::span<const uint32_t> ids,
                                                             uint32_t room,
                                                             std::span<const float> adapters) {
  return std::make_unique<TextAttention>(device_, network_, ids, room, adapters);
}

AttentionPasses DecoderModel::plan_attention(uint32_t room) const {
  return TextAttention::plan(device_.capabilities(), network_, room);
}

NamedArrays DecoderModel::search(const NamedArrays& inputs, const GenerationConfig& config,
                                 uint32_t n_best) {
  const PaddedIds ids =
      read_padded_ids(family_, inputs, "input_ids", config_.vocabulary, network_.context);
  if (ids.rows != 1 || n_best != 1 || config.num_beams != 1)
    throw ModelError(
        family_ + " input `input_ids`",
        "asks for several rows, beams or results: one is what a decoder-only search gives", "");
  DecodingOptions options = {.max_new_tokens = static_cast<uint32_t>(config.max_new_tokens.value_or(
                                 static_cast<int32_t>(network_.context - ids.length)))};
  for (int32_t stop : config.eos) options.stops.push_back(static_cast<uint32_t>(stop));
  const uint32_t context = std::min(ids.length + options.max_new_tokens, network_.context);
  SequenceSlots slots(device_, network_,
                      conversation_slots(device_.capabilities(), network_, 1, context),
                      memory_limit_);
  const std::vector<uint32_t> found = decode_sequence(slots, 0, {.prompt = ids.ids}, options).ids;
  return {{"output_ids", {{1, found.size()}, {found.begin(), found.end()}}}};
}

}  // namespace mulciber
