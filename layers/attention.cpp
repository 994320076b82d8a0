#include "layers/attention.h"

#include <cmath>

#include "mulciber/error.h"
#include "ops/append_cache.h"
#include "ops/disentangled.h"
#include "ops/elementwise.h"
#include "ops/rope.h"

namespace mulciber {
namespace {

/// The attention options of a layer, beside its matrices.
struct Scores {
  const HeadSizes& sizes;
  std::optional<float> scale;
  uint32_t window = 0;
  AttentionBias bias = AttentionBias::kNone;  // beside the view's bias
};

AttentionOptions options_of(const Scores& scores, const AttentionView& view) {
  const HeadSizes& sizes = scores.sizes;
  const float usual = 1.0f / std::sqrt(static_cast<float>(sizes.key_size));
  AttentionOptions options = {.heads = sizes.heads,
                              .kv_heads = sizes.heads,
                              .head_size = sizes.key_size,
                              .value_size = sizes.value_size,
                              .scale = scores.scale.value_or(usual),
                              .causal = view.causal,
                              .window = scores.window,
                              .bias_span = view.bias_span,
                              .rows_per_kv = view.rows_per_kv,
                              .control = view.control};
  options.bias = view.bias_span > 0 ? AttentionBias::kRelative : scores.bias;
  // Padding follows a row's keys, so the last query need not be at the last key.
  if (!view.at_last_key && (view.bias_span > 0 || scores.window > 0)) options.query_offset = 0;
  return options;
}

/// Computes softmax(q k^T / sqrt(d_k)) v, then the output projection.
Tensor attend(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
              const HeadColumns& v, const Scores& scores, const Linear& out,
              const AttentionView& view) {
  const AttentionOptions options = options_of(scores, view);
  if (view.trace && view.trace->attentions)
    view.trace->keep(builder, "probabilities", attention_map(builder, q, k, options));
  Tensor context = attention(builder, q, k, v, options);  // (rows, length, heads * d_v)
  if (view.packing) context = view.packing->pack(builder, context);

  const auto scope = builder.scope("out");
  if (!view.add_to) return out(builder, context);
  out.add_to(builder, context, *view.add_to);
  return *view.add_to;
}

/// Computes scores by distance, and collects all that attention reads in one control tensor.
AttentionControl with_distances(ProgramBuilder& builder, const SelfAttention& layer,
                                const Tensor& qkv, float scale, const AttentionView& view) {
  if (!view.control || !view.control->key_counts)
    throw ShapeError(builder.path(), "scores by distance, and no counts of keys",
                     "say where control has them");
  const DistanceTable& table = *view.distances;
  const auto scope = builder.scope("distances");
  const auto wide = [&](const Tensor& x) {
    return x.type == DataType::kF32 ? x : convert(builder, x, DataType::kF32);
  };
  // Projects the distances to queries and keys; their values are not used.
  const Tensor projected = layer.qkv(builder, table.vectors);
  return disentangled_bias(builder, wide(qkv), wide(projected),
                           {.heads = layer.sizes.heads,
                            .head_size = layer.sizes.key_size,
                            .scale = scale,
                            .content_to_position = table.content_to_position,
                            .position_to_content = table.position_to_content,
                            .control = view.control->tensor,
                            .row_of = table.row_of,
                            .key_counts = *view.control->key_counts});
}

}  // namespace

Tensor SelfAttention::operator()(ProgramBuilder& builder, const Tensor& x,
                                 const AttentionView& view) const {
  const Tensor heads = [&] {
    const auto scope = builder.scope("qkv");
    const Tensor made = qkv(builder, x);  // (rows, length, heads * (2 d_k + d_v))
    return view.packing ? view.packing->spread(builder, made) : made;
  }();
  const uint32_t keys = sizes.key_columns();
  if (view.distances) {
    // The scale is divided among the kinds of scores that are added.
    const DistanceTable& table = *view.distances;
    const int kinds = 1 + int{table.content_to_position} + int{table.position_to_content};
    const float shared =
        1 / std::sqrt(static_cast<float>(sizes.key_size) * static_cast<float>(kinds));
    AttentionView biased = view;
    biased.control = with_distances(builder, *this, heads, shared, view);
    return attend(builder, {heads, 0}, {heads, keys}, {heads, 2 * keys},
                  {sizes, shared, window, AttentionBias::kMaskPerRowAndHead}, out, biased);
  }
  if (!rotation)
    return attend(builder, {heads, 0}, {heads, keys}, {heads, 2 * keys}, {sizes, scale, window},
                  out, view);
  if (!view.control || !view.first_position)
    throw ShapeError(builder.path(), "queries and keys are rotated, and stand at no position",
                     "say where control has the first position");
  const Tensor memory =
      builder.activation({heads.shape[0], heads.shape[1], sizes.memory_columns()}, heads.type);
  const HeadColumns rotated = rope_append(builder, heads, memory,
                                          {.heads = sizes.heads,
                                           .kv_heads = sizes.heads,
                                           .head_size = sizes.key_size,
                                           .rotary_size = rotation->rotated,
                                           .interleaved = rotation->interleaved,
                                           .angles = rotation->angles,
                                           .control = view.control->tensor,
                                           .positions = *view.first_position});
  return attend(builder, rotated, {memory, 0}, {memory, keys}, {sizes, scale, window}, out, view);
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
  AttentionView last = view;
  last.at_last_key = true;
  return attend(builder, {heads, 0}, {cache.tensor, 0}, {cache.tensor, sizes.key_columns()},
                {sizes, scale}, out, last);
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
  return attend(builder, {q, 0}, {memory, 0}, {memory, sizes.key_columns()}, {sizes, scale}, out,
                view);
}

}  // namespace mulciber
