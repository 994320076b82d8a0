#include "models/decoding/decoder_programs.h"

#include <bit>

#include "ops/embedding.h"

namespace mulciber {
namespace {

// How far the host may lag behind the device, in tokens of a row.
constexpr uint32_t kRing = 256;

Tensor planned(Shape shape, DataType type) {
  Tensor tensor = {.shape = shape, .type = type};
  tensor.view.size = tensor.bytes();
  return tensor;
}

/// The last token of every row, of (rows, length, D): (rows, 1, D).
Tensor last_tokens(ProgramBuilder& builder, const Tensor& x, const BatchLayout& layout,
                   const Tensor& control) {
  const uint32_t rows = layout.state.rows;
  return embedding(builder, x.reshaped({x.shape.rows(), x.shape.columns()}),
                   {.control = control,
                    .tokens_offset = layout.last,
                    .rows = rows,
                    .length = 1,
                    .result = x.type});
}

}  // namespace

BatchLayout plan_batch(const DecoderNetwork& network, const BatchShape& shape, uint32_t longest) {
  BatchLayout layout;
  layout.longest = longest;
  layout.last = layout.prompt + shape.rows * longest;
  // The last token of a sequence need not be in the cache.
  layout.state = plan_sample_state(layout.last + shape.rows, shape.rows, shape.context + 1, 0,
                                   kMostStops, kRing);
  layout.split_counters = layout.state.first_word + layout.state.words;
  uint32_t heads = 0;
  for (const CausalLayer& layer : network.decoder.layers)
    heads = std::max(heads, layer.attention.heads);
  layout.words = layout.split_counters + shape.rows * heads;
  if (!network.head_masks.empty()) {
    layout.head_masks = static_cast<int32_t>(layout.words);
    layout.words += static_cast<uint32_t>(network.head_masks.size());
  }
  return layout;
}

std::vector<uint32_t> initial_words(const DecoderNetwork& network, const BatchLayout& layout) {
  std::vector<uint32_t> words(layout.words, 0);
  for (size_t i = 0; i < network.head_masks.size(); ++i)
    words[static_cast<size_t>(layout.head_masks) + i] =
        std::bit_cast<uint32_t>(network.head_masks[i]);
  return words;
}

BatchTensors batch_tensor_shapes(const DecoderNetwork& network, const BatchShape& shape,
                                 const BatchLayout& layout) {
  BatchTensors tensors = {.control = planned({layout.words}, DataType::kU32),
                          .progress = planned({layout.state.progress_words()}, DataType::kU32),
                          .caches = {}};
  for (const CausalLayer& layer : network.decoder.layers)
    tensors.caches.push_back(
        planned({shape.rows, shape.context, layer.attention.cache_columns()}, network.cache));
  return tensors;
}

Tensor decoder_tokens(ProgramBuilder& builder, const DecoderNetwork& network,
                      const BatchLayout& layout, const BatchTensors& tensors, uint32_t length,
                      Trace* trace) {
  const TokenInput tokens = {.control = tensors.control,
                             .tokens = length == 1 ? layout.state.tokens : layout.prompt,
                             .rows = layout.state.rows,
                             .length = length,
                             .first_position = static_cast<int32_t>(layout.state.positions),
                             .first_position_stride = 1,
                             .type = network.activations};
  const CausalState state = {.control = tensors.control,
                             .positions = layout.state.positions,
                             .caches = tensors.caches,
                             .head_masks = layout.head_masks,
                             .split_counters = static_cast<int32_t>(layout.split_counters),
                             .trace = trace};
  const Tensor embeddings = [&] {
    const auto scope = builder.layer("embedding");
    return network.embedding(builder, tokens, trace);
  }();
  return network.decoder(builder, embeddings, state);
}

void build_decoder_pass(ProgramBuilder& builder, const DecoderNetwork& network,
                        const BatchLayout& layout, const BatchTensors& tensors,
                        const DecoderPass& shape, Trace* trace) {
  const uint32_t rows = layout.state.rows;
  Tensor x = decoder_tokens(builder, network, layout, tensors, shape.length, trace);
  if (shape.result == PassOutput::kCache) return;
  const auto scope = builder.layer("output");
  if (shape.result == PassOutput::kTrace) {
    trace->keep(builder, "normalized", x);
    trace->keep(builder, "logits", network.decoder.logits(builder, x));
    return;
  }
  if (shape.length > 1) x = last_tokens(builder, x, layout, tensors.control);
  const Tensor logits = network.decoder.logits(builder, x).reshaped({rows, network.vocabulary});
  sample(builder, logits, tensors.control, layout.state, tensors.progress);
}

}  // namespace mulciber
