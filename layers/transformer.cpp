#include "layers/transformer.h"

#include <fmt/format.h>

namespace mulciber {
namespace {

/// One sublayer with its residual connection and norm. `sublayer(x, add_to)` returns its result, or
/// adds it to `add_to`.
template <typename Sublayer>
Tensor residual(ProgramBuilder& builder, const Tensor& x, const std::optional<Norm>& norm,
                NormPlacement placement, const char* name, Sublayer&& sublayer) {
  const auto normalize = [&](const Tensor& y, const std::optional<Tensor>& added) {
    const auto scope = builder.scope(fmt::format("{}_norm", name));
    return (*norm)(builder, y, added);
  };
  if (placement == NormPlacement::kAfter) {
    const Tensor y = [&] {
      const auto scope = builder.scope(name);
      return sublayer(x, std::nullopt);
    }();
    return normalize(y, x);
  }
  const Tensor y = norm ? normalize(x, std::nullopt) : x;
  const auto scope = builder.scope(name);
  sublayer(y, x);
  return x;
}

AttentionView with_residual(AttentionView view, const std::optional<Tensor>& add_to) {
  view.add_to = add_to;
  return view;
}

/// Keeps x as the output of the current scope. Pre-norm layers change x in place later, so their
/// output is copied.
void keep_state(ProgramBuilder& builder, Trace* trace, const Tensor& x, bool changes_later) {
  if (!trace || !trace->hidden_states) return;
  if (changes_later)
    trace->keep_copy(builder, "output", x);
  else
    trace->keep(builder, "output", x);
}

std::string layer_name(size_t index) { return fmt::format("layers.{}", index); }

std::optional<ControlArray<float>> per_layer(const std::optional<ControlArray<float>>& masks,
                                             size_t layer, uint32_t heads) {
  if (!masks) return std::nullopt;
  return masks->part(layer * heads, heads);
}

template <typename Layer>
bool in_place(const std::vector<Layer>& layers) {
  return !layers.empty() && layers.front().norms == NormPlacement::kBefore;
}

Tensor normalized(ProgramBuilder& builder, const std::optional<Norm>& norm, const Tensor& x) {
  if (!norm) return x;
  const auto scope = builder.scope("final_norm");
  return (*norm)(builder, x);
}

AttentionView cross_view(const DecoderLayer& layer, size_t index, const StackControl& control,
                         uint32_t rows_per_memory, Trace* trace) {
  return {.control = AttentionControl{.tensor = control.tensor,
                                      .key_counts = control.lengths,
                                      .head_mask = per_layer(control.cross_masks, index,
                                                             layer.cross_attention.sizes.heads)},
          .rows_per_kv = rows_per_memory,
          .trace = trace};
}

}  // namespace

Tensor EncoderLayer::operator()(ProgramBuilder& builder, const Tensor& x,
                                const AttentionView& self) const {
  const Tensor attended = residual(builder, x, self_attention_norm, norms, "self_attn",
                                   [&](const Tensor& y, const std::optional<Tensor>& add_to) {
                                     return self_attention(builder, y, with_residual(self, add_to));
                                   });
  return residual(builder, attended, feed_forward_norm, norms, "ffn",
                  [&](const Tensor& y, const std::optional<Tensor>& add_to) {
                    return feed_forward(builder, y, add_to);
                  });
}

Tensor DecoderLayer::operator()(ProgramBuilder& builder, const Tensor& x,
                                const Inputs& inputs) const {
  const Tensor attended =
      residual(builder, x, self_attention_norm, norms, "self_attn",
               [&](const Tensor& y, const std::optional<Tensor>& add_to) {
                 const AttentionView view = with_residual(inputs.self, add_to);
                 return inputs.cache ? self_attention.step(builder, y, *inputs.cache, view)
                                     : self_attention(builder, y, view);
               });
  const Tensor crossed = residual(builder, attended, cross_attention_norm, norms, "cross_attn",
                                  [&](const Tensor& y, const std::optional<Tensor>& add_to) {
                                    return cross_attention(builder, y, inputs.memory,
                                                           with_residual(inputs.cross, add_to));
                                  });
  return residual(builder, crossed, feed_forward_norm, norms, "ffn",
                  [&](const Tensor& y, const std::optional<Tensor>& add_to) {
                    return feed_forward(builder, y, add_to);
                  });
}

Tensor Encoder::operator()(ProgramBuilder& builder, const Tensor& embeddings,
                           const StackControl& control, Trace* trace) const {
  Tensor x = embeddings;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto scope = builder.layer(layer_name(i));
    std::optional<AttentionControl> read;
    if (control.tensor.valid())
      read = AttentionControl{
          .tensor = control.tensor,
          .key_counts = control.lengths,
          .head_mask = per_layer(control.self_masks, i, layers[i].self_attention.sizes.heads),
          .bias = control.self_bias};
    const AttentionView self = {.control = read,
                                .bias_span = control.self_bias_span,
                                .first_position = control.first_position,
                                .causal = causal,
                                .distances = control.distances,
                                .packing = control.packing,
                                .trace = trace};
    x = layers[i](builder, x, self);
    keep_state(builder, trace, x, in_place(layers) && i + 1 < layers.size());
  }
  return normalized(builder, final_norm, x);
}

Tensor Decoder::operator()(ProgramBuilder& builder, const Tensor& embeddings,
                           std::span<const Tensor> memories, const StackControl& control,
                           Trace* trace) const {
  Tensor x = embeddings;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto scope = builder.layer(layer_name(i));
    const AttentionView self = {
        .control = AttentionControl{.tensor = control.tensor,
                                    .head_mask = per_layer(control.self_masks, i,
                                                           layers[i].self_attention.sizes.heads),
                                    .bias = control.self_bias},
        .bias_span = control.self_bias_span,
        .causal = true,
        .trace = trace};
    x = layers[i](builder, x,
                  {.self = self,
                   .cross = cross_view(layers[i], i, control, 1, trace),
                   .memory = memories[i]});
    keep_state(builder, trace, x, in_place(layers) && i + 1 < layers.size());
  }
  return normalized(builder, final_norm, x);
}

Tensor Decoder::step(ProgramBuilder& builder, const Tensor& embeddings,
                     std::span<const Tensor> memories, const StackControl& control,
                     const Step& step) const {
  Tensor x = embeddings;
  const auto length = static_cast<uint32_t>(embeddings.shape[1]);
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto scope = builder.layer(layer_name(i));
    const AttentionView self = {
        // When the cache is read it also holds the keys of this step.
        .control = AttentionControl{.tensor = control.tensor,
                                    .key_counts = step.position,
                                    .key_count_extra = length,
                                    .ancestry = step.ancestry,
                                    .head_mask = per_layer(control.self_masks, i,
                                                           layers[i].self_attention.sizes.heads),
                                    .bias = control.self_bias},
        .bias_span = control.self_bias_span,
        .causal = length > 1};
    x = layers[i](builder, x,
                  {.self = self,
                   .cache = KeyValueCache{.tensor = step.caches[i],
                                          .control = control.tensor,
                                          .position = step.position},
                   .cross = cross_view(layers[i], i, control, step.rows_per_memory, nullptr),
                   .memory = memories[i]});
  }
  return normalized(builder, final_norm, x);
}

}  // namespace mulciber
