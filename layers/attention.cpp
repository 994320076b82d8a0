#include "layers/attention.h"

#include <cmath>

#include "mulciber/error.h"
#include "ops/append_cache.h"
#include "ops/rope.h"

namespace mulciber {
namespace {

AttentionOptions options_of(const HeadSizes& sizes, const AttentionView& view, uint32_t window) {
  AttentionOptions options = {.heads = sizes.heads,
                              .kv_heads = sizes.heads,
                              .head_size = sizes.key_size,
                              .value_size = sizes.value_size,
                              .scale = 1.0f / std::sqrt(static_cast<float>(sizes.key_size)),
                              .causal = view.causal,
                              .window = window,
                              .bias_span = view.bias_span,
                              .rows_per_kv = view.rows_per_kv,
                              .control = view.control};
  if (view.bias_span > 0) options.bias = AttentionBias::kRelative;
  // Padding lies behind a row's keys, so the last query need not stand at the last of them.
  if (view.bias_span > 0 || window > 0) options.query_offset = 0;
  return options;
}

/// softmax(q k^T / sqrt(d_k)) v, then the output projection.
Tensor attend(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
              const HeadColumns& v, const HeadSizes& sizes, const Linear& out,
              const AttentionView& view, uint32_t window = 0) {
  const AttentionOptions options = options_of(sizes, view, window);
  if (view.trace && view.trace->attentions)
    view.trace->keep(builder, "probabilities", attention_map(builder, q, k, options));
  const Tensor context = attention(builder, q, k, v, options);  // (rows, length, heads * d_v)

  const auto scope = builder.scope("out");
  if (!view.add_to) return out(builder, context);
  out.add_to(builder, context, *view.add_to);
  return *view.add_to;
}

}  // namespace

Tensor SelfAttention::operator()(ProgramBuilder& builder, const Tensor& x,
                                 const AttentionView& view) const {
  const Tensor heads = [&] {
    const auto scope = builder.scope("qkv");
    return qkv(builder, x);  // (rows, length, heads * (2 d_k + d_v))
  }();
  const uint32_t keys = sizes.key_columns();
  if (!rotation)
    return attend(builder, {heads, 0}, {heads, keys}, {heads, 2 * keys}, sizes, out, view, window);
  if (!view.control || !view.first_position)
    throw ShapeError(builder.path(), "queries and keys are rotated, and stand at no position",
                     "say where control has the first position");
  const Tensor memory =
      builder.activation({x.shape[0], x.shape[1], sizes.memory_columns()}, heads.type);
  const HeadColumns rotated = rope_append(builder, heads, memory,
                                          {.heads = sizes.heads,
                                           .kv_heads = sizes.heads,
                                           .head_size = sizes.key_size,
                                           .rotary_size = rotation->rotated,
                                           .interleaved = rotation->interleaved,
                                           .angles = rotation->angles,
                                           .control = view.control->tensor,
                                           .positions = *view.first_position});
  return attend(builder, rotated, {memory, 0}, {memory, keys}, sizes, out, view, window);
}

Tensor SelfAttention::step(ProgramBuilder& builder, const Tensor& x, const KeyValueCache& cache,
                           const AttentionView& view) const {
  const Tensor heads = [&] {
    const auto scope = builder.scope("qkv");
    return qkv(builder, x);  // (rows, 1, heads * (2 d_k + d_v))
  }();
  append_cache(
      builder, heads, cache.tensor,
      {.first_column = sizes.key_columns(), .control = cache.control, .positions = cache.position});
  return attend(builder, {heads, 0}, {cache.tensor, 0}, {cache.tensor, sizes.key_columns()}, sizes,
                out, view);
}

void CrossAttention::project(ProgramBuilder& builder, const Tensor& memory,
                             const Tensor& into) const {
  key_value.write_to(builder, memory, into);
}

Tensor CrossAttention::project(ProgramBuilder& builder, const Tensor& memory) const {
  return key_value(builder, memory);
}

Tensor CrossAttention::operator()(ProgramBuilder& builder, const Tensor& x, const Tensor& memory,
                                  const AttentionView& view) const {
  const Tensor q = [&] {
    const auto scope = builder.scope("query");
    return query(builder, x);  // (rows, length, heads * d_k)
  }();
  return attend(builder, {q, 0}, {memory, 0}, {memory, sizes.key_columns()}, sizes, out, view);
}

}  // namespace mulciber
