#include "models/generation/decoder_programs.h"

#include <algorithm>

#include "ops/copy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace mulciber {
namespace {

/// The last token of every row: (rows, length, D) to (rows, 1, D).
Tensor last_tokens(ProgramBuilder& builder, const Tensor& x, const BatchLayout& layout,
                   const Tensor& control) {
  const uint32_t rows = layout.state.rows;
  return embedding(
      builder, x.reshaped({x.shape.rows(), x.shape.columns()}),
      {.control = control, .tokens = layout.last, .rows = rows, .length = 1, .result = x.type});
}

}  // namespace

std::optional<AdapterScales> adapter_scales(const BatchLayout& layout,
                                            const BatchTensors& tensors) {
  if (!layout.adapter_scales) return std::nullopt;
  return AdapterScales{tensors.control, *layout.adapter_scales,
                       layout.adapter_scales->count / layout.state.rows};
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
                             .context = layout.context,
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
