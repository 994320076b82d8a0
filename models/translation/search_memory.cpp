#include "models/translation/search_memory.h"

#include <algorithm>

#include "models/translation/search_slots.h"

namespace mulciber {
namespace {

constexpr uint32_t kLengthStep = 8;
constexpr uint32_t kContextStep = 16;
constexpr uint32_t kBannedStep = 8;

uint32_t rounded_up(uint32_t value, uint32_t step) { return (value + step - 1) / step * step; }

uint64_t state_bytes(const StateTensor& tensor) {
  return tensor.shape.elements() * size_of(tensor.type);
}

uint64_t control_bytes(const EncoderDecoderNetwork& network, const SearchShape& shape) {
  ControlLayout control;
  plan_source(control, network, shape.batch, shape.source_length);
  return (control.words() + uint64_t{shape.rows()} * (4 * shape.context + 8)) * sizeof(uint32_t);
}

uint64_t activation_bytes(const EncoderDecoderNetwork& network, uint64_t tokens) {
  return tokens * network.live_columns() * size_of(network.activations);
}

}  // namespace

uint32_t padded_length(const EncoderDecoderNetwork& network, uint32_t length) {
  return std::min(rounded_up(length, kLengthStep), network.context);
}

SearchShape search_shape(const EncoderDecoderNetwork& network, uint32_t items,
                         uint32_t source_length, const GenerationSettings& settings) {
  const auto banned = static_cast<uint32_t>(settings.banned.size());
  const auto ends = static_cast<uint32_t>(settings.ends.size());
  const auto words = static_cast<uint32_t>(settings.banned_words.size());
  uint32_t word_ids = 0;
  for (const std::vector<uint32_t>& word : settings.banned_words)
    word_ids += static_cast<uint32_t>(word.size());
  return {.batch = round_up_batch(items),
          .source_length = padded_length(network, source_length),
          .beams = settings.beams,
          .context = rounded_up(settings.max_new_tokens + 1, kContextStep),
          .room = {.banned = rounded_up(std::max(banned, 1u), kBannedStep),
                   .ends = std::max(ends, 1u),
                   .words = rounded_up(words, kBannedStep),
                   .word_ids = rounded_up(word_ids, kBannedStep),
                   .ngrams = settings.no_repeat_ngram > 0},
          .masked_output = settings.renormalize && banned > 0};
}

uint64_t search_bytes(const EncoderDecoderNetwork& network, const SearchShape& shape) {
  const uint64_t tokens = uint64_t{shape.batch} * shape.source_length;
  const uint64_t rows = shape.rows();
  uint64_t bytes = 0;
  for (const StateTensor& tensor : network.state_tensors(shape)) bytes += state_bytes(tensor);
  bytes += activation_bytes(network, tokens + rows);
  bytes += rows * network.target_vocabulary * sizeof(float);
  return bytes + control_bytes(network, shape);
}

uint64_t widest_binding(const EncoderDecoderNetwork& network, const SearchShape& shape) {
  const uint64_t tokens = uint64_t{shape.batch} * shape.source_length;
  uint64_t widest = std::max({tokens * network.widest_columns() * size_of(network.activations),
                              uint64_t{shape.rows()} * network.target_vocabulary * sizeof(float),
                              control_bytes(network, shape)});
  for (const StateTensor& tensor : network.state_tensors(shape))
    widest = std::max(widest, state_bytes(tensor));
  return widest;
}

void plan_search(MemoryPrediction& plan, const EncoderDecoderNetwork& network,
                 const GenerationConfig& generation, const ModelOptions& options) {
  if (options.sequences == 0) return;
  const uint32_t tokens =
      options.context > 0 ? std::min(options.context, network.context) : network.context;
  const SearchShape shape =
      search_shape(network, 1, tokens, generation_settings(generation, tokens));
  for (const StateTensor& tensor : network.state_tensors(shape)) {
    plan.key_value_bytes += state_bytes(tensor);
    // Translator::translate() encodes sources to memory of their own, from which it copies.
    if (!tensor.grows) plan.context_bytes += state_bytes(tensor);
  }
  plan.context_bytes += activation_bytes(network, shape.source_length);
  plan.context_bytes += search_bytes(network, shape);
}

}  // namespace mulciber
