#include "layers/causal_decoder.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/append_attention.h"
#include "ops/append_cache.h"
#include "ops/copy.h"
#include "ops/elementwise.h"
#include "ops/latent_attention.h"
#include "ops/norm.h"

namespace mulciber {
namespace {

/// Copies the stream for a trace, because layers change the stream in place.
void keep_stream(ProgramBuilder& builder, Trace* trace, const Tensor& x) {
  if (trace && trace->hidden_states) trace->keep_copy(builder, "output", x);
}

}  // namespace

std::optional<RopeOptions> CausalAttention::rotation(const CausalState& state,
                                                     const Tensor& cache) const {
  if (!rope) return std::nullopt;
  const uint64_t room = state.pages ? state.context : cache.shape[1];
  const bool passes = rope->long_angles && room > rope->original_context;
  return RopeOptions{.heads = heads,
                     .kv_heads = kv_heads,
                     .head_size = head_size,
                     .value_size = values(),
                     .values = !latent,
                     .rotary_size = rope->rotated,
                     .interleaved = rope->interleaved,
                     .angles = passes ? *rope->long_angles : rope->angles,
                     .gains = qk_gains,
                     .epsilon = qk_epsilon,
                     .control = state.control,
                     .positions = state.positions,
                     .pages = state.pages};
}

Tensor CausalAttention::operator()(ProgramBuilder& builder, const Operand& x,
                                   const CausalState& state, uint32_t layer,
                                   const std::optional<Tensor>& add_to) const {
  const Tensor& cache = state.caches[layer];
  const Tensor projected = [&] {
    const auto scope = builder.scope("qkv");
    if (latent) return (*latent)(builder, x.x, state.adapter_scales());
    // (rows, length, query columns + cache columns)
    const Tensor y = qkv(builder, x, state.adapter_scales());
    return clip > 0 ? mulciber::clip(builder, y, clip) : y;
  }();
  uint64_t column = 0;
  for (const Tensor& gains : group_gains) {
    norm_columns(builder, projected, column, gains, qk_epsilon, centers_groups);
    column += gains.shape.elements();
  }
  const std::optional<RopeOptions> rotated = rotation(state, cache);
  const uint32_t factors = heads * (sinks ? 2 : 1);  // factors in control for one layer
  const AttentionOptions options = {
      .heads = heads,
      .kv_heads = kv_heads,
      .head_size = head_size,
      .value_size = values(),
      .scale = scale,
      .causal = true,
      .window = window,
      .soft_cap = soft_cap,
      .sinks = sinks,
      // When the cache is read it holds the keys of this pass.
      .control =
          AttentionControl{.tensor = state.control,
                           .key_counts = state.positions,
                           .key_count_extra = static_cast<uint32_t>(x.x.shape[1]),
                           .pages = state.pages,
                           .head_mask = state.head_masks ? std::optional(state.head_masks->part(
                                                               uint64_t{layer} * factors, factors))
                                                         : std::nullopt,
                           .split_counters = state.split_counters}};
  const bool traced = state.trace && state.trace->attentions;
  const Tensor context = [&] {  // (rows, length, heads * value size)
    const auto append = [&](const Tensor& qkv) {
      if (rotated) {
        rope_append(builder, qkv, cache, *rotated);
      } else {
        append_cache(builder, qkv, cache,
                     {.first_column = query_columns(),
                      .control = state.control,
                      .positions = state.positions,
                      .pages = state.pages});
      }
    };
    if (appends && !traced && appends_in_attention(builder, projected, cache, rotated, options)) {
      if (state.shares_rows) {
        // All keys are appended before any row attends. The attention then writes the same bits
        // again, so its kernel row, and with it the order of sums, is that of a step without shared
        // rows.
        const Tensor copy = builder.activation(projected.shape, projected.type);
        copy_columns(builder, projected, copy);
        append(copy);
      }
      return append_attention(builder, projected, cache, rotated, options);
    }
    append(projected);
    const HeadColumns q = {projected, 0}, k = {cache, 0}, v = {cache, kv_heads * head_size};
    if (traced) state.trace->keep(builder, "probabilities", attention_map(builder, q, k, options));
    if (!latent) return attention(builder, q, k, v, options);
    return latent->values(builder, latent_attention(builder, q, cache, options),
                          state.adapter_scales());
  }();

  const auto scope = builder.scope("out");
  if (!add_to) return out(builder, context, state.adapter_scales());
  out.add_to(builder, context, *add_to, state.adapter_scales());
  return *add_to;
}

LayerCache CausalLayer::cache(DataType keys_and_values) const {
  if (mixer) return mixer->cache;
  return {
      .columns = attention.cache_columns(), .type = keys_and_values, .window = attention.window};
}

Operand CausalLayer::operator()(ProgramBuilder& builder, const Tensor& stream, const Operand& x,
                                const CausalState& state, uint32_t layer) const {
  if (mixer)
    return after_feed_forward.add_and_normalize(
        builder, stream, [&](const std::optional<Tensor>& add_to) {
          const auto scope = builder.scope(mixer->name);
          return mixer->apply(builder, {.x = x.x,
                                        .cache = state.caches[layer],
                                        .control = state.control,
                                        .positions = state.positions,
                                        .counts = state.counts,
                                        .pages = state.pages,
                                        .add_to = add_to,
                                        .adapters = state.adapter_scales()});
        });
  const Operand attended = [&]() -> Operand {
    const auto scope = builder.scope("attention");
    const auto attend = [&](const std::optional<Tensor>& add_to) {
      return attention(builder, x, state, layer, add_to);
    };
    if (after_attention) return after_attention->add_and_normalize(builder, stream, attend);
    // The input of feed-forward is computed before the stream changes.
    const Operand beside =
        before_feed_forward ? Operand((*before_feed_forward)(builder, stream)) : x;
    attend(stream);
    return beside;
  }();
  const auto scope = builder.scope("ffn");
  if (const auto* experts = std::get_if<MixtureOfExperts>(&feed_forward))
    return after_feed_forward.join_result(
        builder, stream, (*experts)(builder, attended.x, nullptr, state.adapter_scales()));
  return after_feed_forward.add_and_normalize(
      builder, stream, [&](const std::optional<Tensor>& add_to) {
        return std::get<FeedForward>(feed_forward)(builder, attended, add_to,
                                                   state.adapter_scales());
      });
}

Tensor CausalDecoder::operator()(ProgramBuilder& builder, const Tensor& embeddings,
                                 const CausalState& state) const {
  const Tensor& stream = embeddings;
  Operand x = [&] {
    if (!first_norm) return Operand(stream);
    const auto scope = builder.layer("first_norm");
    return first_norm->for_product(builder, stream);
  }();
  for (uint32_t i = 0; i < layers.size(); ++i) {
    const auto scope = builder.layer(fmt::format("layers.{}", i));
    x = layers[i](builder, stream, x, state, i);
    keep_stream(builder, state.trace, stream);
  }
  return x.x;  // the last norm is never folded into a product
}

bool CausalDecoder::keeps_states() const {
  return std::ranges::any_of(layers, [](const CausalLayer& layer) {
    return layer.mixer && !layer.mixer->cache.keeps_tokens();
  });
}

uint32_t CausalDecoder::original_context() const {
  uint32_t context = 0;
  for (const CausalLayer& layer : layers) {
    if (const auto& rope = layer.attention.rope)
      context = std::max(context, rope->original_context);
  }
  return context;
}

Tensor CausalDecoder::logits(ProgramBuilder& builder, const Tensor& x,
                             const AdapterScales* adapters) const {
  const Tensor logits =
      output(builder, x.type == DataType::kF32 ? x : convert(builder, x, DataType::kF32), adapters);
  if (logit_scale == 1 && logit_cap == 0) return logits;
  return scale_and_cap(builder, logits, logit_scale, logit_cap);
}

}  // namespace mulciber
