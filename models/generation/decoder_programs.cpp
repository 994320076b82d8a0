#include "models/generation/decoder_programs.h"

#include <algorithm>

#include "ops/copy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace mulciber {
namespace {

// How far the CPU may lag behind the device, in tokens of a row.
constexpr uint32_t kRing = 256;

Tensor planned(Shape shape, DataType type) {
  Tensor tensor = {.shape = shape, .type = type};
  tensor.view.size = tensor.bytes();
  return tensor;
}

/// Contents of BatchLayout::head_masks: for each layer the factors of its heads, then the logits of
/// their sinks.
std::vector<float> head_factors(const DecoderNetwork& network) {
  if (network.sinks.empty()) return network.head_masks;
  std::vector<float> all;
  const size_t layers = network.decoder.layers.size(), heads = network.sinks.size() / layers;
  for (size_t layer = 0; layer < layers; ++layer) {
    for (size_t head = 0; head < heads; ++head)
      all.push_back(network.head_masks.empty() ? 1 : network.head_masks[layer * heads + head]);
    const auto sinks = network.sinks.begin() + static_cast<std::ptrdiff_t>(layer * heads);
    all.insert(all.end(), sinks, sinks + static_cast<std::ptrdiff_t>(heads));
  }
  return all;
}

/// The last token of every row: (rows, length, D) to (rows, 1, D).
Tensor last_tokens(ProgramBuilder& builder, const Tensor& x, const BatchLayout& layout,
                   const Tensor& control) {
  const uint32_t rows = layout.state.rows;
  return embedding(
      builder, x.reshaped({x.shape.rows(), x.shape.columns()}),
      {.control = control, .tokens = layout.last, .rows = rows, .length = 1, .result = x.type});
}

}  // namespace

BatchLayout plan_batch(const DecoderNetwork& network, const BatchShape& shape, uint32_t longest) {
  BatchLayout layout;
  layout.longest = longest;
  layout.prompt = layout.control.add<uint32_t>(uint64_t{shape.rows} * longest);
  if (network.sees) layout.given = layout.control.add<uint32_t>(longest);
  layout.last = layout.control.add<uint32_t>(shape.rows);
  if (const uint32_t scales = network.adapter_scales(); scales > 0)
    layout.adapter_scales = layout.control.add<float>(uint64_t{shape.rows} * scales);
  // The last token of a sequence need not be in the cache.
  layout.state = plan_sample_state(layout.control, shape.rows, shape.context + 1, 0, kMostStops,
                                   kRing, shape.biases, network.vocabulary);
  uint32_t heads = 0;
  for (const CausalLayer& layer : network.decoder.layers)
    heads = std::max(heads, layer.attention.heads);
  layout.split_counters = layout.control.add<uint32_t>(uint64_t{shape.rows} * heads);
  if (const size_t factors = head_factors(network).size(); factors > 0)
    layout.head_masks = layout.control.add<float>(factors);
  if (shape.page > 0)
    layout.pages = layout.control.add<uint32_t>(uint64_t{shape.rows} * shape.row_pages());
  return layout;
}

BatchLayout part_of(const BatchLayout& layout, uint32_t first, uint32_t rows) {
  BatchLayout part = layout;
  SampleStateLayout& state = part.state;
  part.last = layout.last.part(first, rows);
  if (layout.adapter_scales) {
    const uint32_t of_row = layout.adapter_scales->count / layout.state.rows;
    part.adapter_scales =
        layout.adapter_scales->part(uint64_t{first} * of_row, uint64_t{rows} * of_row);
  }
  state.rows = rows;
  for (auto* array : {&state.positions, &state.tokens, &state.fed, &state.counts, &state.stopped})
    *array = array->part(first, rows);
  state.settings = state.settings.part(first, rows);
  const uint64_t capacity = state.history_capacity;
  state.history = state.history.part(first * capacity, rows * capacity);
  const uint64_t biases = 1 + 2 * uint64_t{state.bias_capacity};
  if (state.bias_capacity > 0) state.biases = state.biases.part(first * biases, rows * biases);
  const uint64_t mask = 1 + uint64_t{state.mask_words};
  state.masks = state.masks.part(first * mask, rows * mask);
  if (layout.pages) {
    const uint64_t pages = layout.pages->count / layout.state.rows;
    part.pages = layout.pages->part(first * pages, rows * pages);
  }
  return part;
}

BatchTensors part_of(const BatchTensors& tensors, const DecoderNetwork& network, uint32_t first,
                     uint32_t rows) {
  BatchTensors part = tensors;
  for (size_t layer = 0; layer < part.caches.size(); ++layer) {
    if (!network.decoder.layers[layer].state_space) continue;
    Tensor& state = part.caches[layer];
    const uint64_t lines = state.shape[1], columns = state.shape.columns();
    state = state.row_slice(first * lines, rows * lines).reshaped({rows, lines, columns});
  }
  return part;
}

ControlWords initial_words(const DecoderNetwork& network, const BatchLayout& layout) {
  ControlWords words(layout.control.words());
  if (layout.head_masks) words.set(*layout.head_masks, head_factors(network));
  for (uint32_t row = 0; row < layout.state.rows; ++row)
    set_adapters(words, network, layout, row, {});
  return words;
}

void set_adapters(ControlWords& words, const DecoderNetwork& network, const BatchLayout& layout,
                  uint32_t row, std::span<const float> scales) {
  for (size_t i = 0; i < network.adapters.size(); ++i) {
    const NetworkAdapter& adapter = network.adapters[i];
    words.fill(layout.adapter_scales->part(uint64_t{row} * network.adapter_scales() + adapter.first,
                                           adapter.count),
               scales.empty() ? adapter.scale : scales[i]);
  }
}

std::optional<AdapterScales> adapter_scales(const BatchLayout& layout,
                                            const BatchTensors& tensors) {
  if (!layout.adapter_scales) return std::nullopt;
  return AdapterScales{tensors.control, *layout.adapter_scales,
                       layout.adapter_scales->count / layout.state.rows};
}

BatchTensors batch_tensor_shapes(const DecoderNetwork& network, const BatchShape& shape,
                                 const BatchLayout& layout) {
  BatchTensors tensors = {.control = planned({layout.control.words()}, DataType::kU32),
                          .progress = planned({layout.state.progress_words()}, DataType::kU32),
                          .caches = {},
                          .rows = {},
                          .given = {}};
  if (layout.given)
    tensors.given =
        planned({uint64_t{layout.own_rows()} + layout.longest, network.width()}, DataType::kF32);
  for (const CausalLayer& layer : network.decoder.layers)
    tensors.caches.push_back(
        shape.page > 0 && !layer.state_space
            ? planned({shape.pages, shape.page, layer.attention.cache_columns()}, network.cache)
            : layer.cache(shape.rows, shape.context, network.cache));
  return tensors;
}

uint32_t cache_room(const BatchTensors& tensors, const DecoderNetwork& network) {
  uint64_t room = UINT32_MAX;
  for (size_t i = 0; i < tensors.caches.size(); ++i)
    if (!network.decoder.layers[i].state_space) room = std::min(room, tensors.caches[i].shape[1]);
  return static_cast<uint32_t>(room);
}

namespace {

/// Embeddings of tokens, some of which are given. The others are copied, so that they have the bits
/// of a pass over tokens alone.
Tensor mixed_embeddings(ProgramBuilder& builder, const DecoderNetwork& network,
                        const BatchLayout& layout, const BatchTensors& tensors,
                        const TokenInput& tokens, Trace* trace) {
  const uint64_t length = tokens.length;
  const Tensor own = network.embedding(builder, tokens);
  const Tensor wide = own.type == DataType::kF32 ? own : convert(builder, own, DataType::kF32);
  const Tensor& table = tensors.given.value();
  copy_columns(builder, wide.reshaped({length, network.width()}),
               table.row_slice(layout.own_rows(), length));
  const Tensor x = embedding(builder, table,
                             {.control = tensors.control,
                              .tokens = layout.given->part(0, length),
                              .length = tokens.length,
                              .result = network.activations});
  if (trace && trace->hidden_states) trace->keep_copy(builder, "output", x);
  return x;
}

}  // namespace

Tensor decoder_tokens(ProgramBuilder& builder, const DecoderNetwork& network,
                      const BatchLayout& layout, const BatchTensors& tensors,
                      const DecoderPass& shape, Trace* trace) {
  const uint32_t length = shape.length;
  const TokenInput tokens = {.control = tensors.control,
                             .tokens = length == 1 ? layout.state.tokens : layout.prompt,
                             .rows = layout.state.rows,
                             .length = length,
                             .first_position = layout.state.positions,
                             .type = network.activations};
  const CausalState state = {.control = tensors.control,
                             .positions = layout.state.positions,
                             .caches = tensors.caches,
                             .counts = layout.state.fed,
                             .head_masks = layout.head_masks,
                             .split_counters = layout.split_counters,
                             .pages = layout.pages,
                             .adapters = adapter_scales(layout, tensors),
                             .shares_rows = shape.shares_rows,
                             .trace = trace};
  const Tensor embeddings = [&] {
    const auto scope = builder.layer("embedding");
    if (shape.mixed) return mixed_embeddings(builder, network, layout, tensors, tokens, trace);
    if (!shape.from_rows) return network.embedding(builder, tokens, trace);
    TokenEmbedding given = network.embedding;
    given.table = tensors.rows.value();
    given.scale = 1 / network.stream_scale;
    return given(builder, tokens, trace);
  }();
  return network.decoder(builder, embeddings, state);
}

PassTensors build_decoder_pass(ProgramBuilder& builder, const DecoderNetwork& network,
                               const BatchLayout& layout, const BatchTensors& tensors,
                               const DecoderPass& shape, Trace* trace) {
  const uint32_t rows = layout.state.rows;
  Tensor x = decoder_tokens(builder, network, layout, tensors, shape, trace);
  PassTensors kept;
  if (shape.states) {
    kept.states = x.type == DataType::kF32 ? x : convert(builder, x, DataType::kF32);
    builder.keep(kept.states);
  }
  if (shape.result == PassOutput::kCache) return kept;
  const auto scope = builder.layer("output");
  const std::optional<AdapterScales> scales = adapter_scales(layout, tensors);
  const auto logits = [&] {
    return network.decoder.logits(builder, x, scales ? &*scales : nullptr);
  };
  if (shape.result == PassOutput::kTrace) {
    trace->keep(builder, "normalized", x);
    trace->keep(builder, "logits", logits());
    return kept;
  }
  if (shape.length > 1) x = last_tokens(builder, x, layout, tensors.control);
  kept.logits = logits().reshaped({rows, network.vocabulary});
  builder.keep(kept.logits);
  if (shape.raw_logits) {
    // sample() writes penalties and biases into the logits from which it chooses.
    kept.raw_logits = builder.activation(kept.logits.shape, DataType::kF32);
    copy_columns(builder, kept.logits, kept.raw_logits);
    builder.keep(kept.raw_logits);
  }
  sample(builder, kept.logits, tensors.control, layout.state, tensors.progress);
  return kept;
}

}  // namespace mulciber
