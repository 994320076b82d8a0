#include "models/networks/decoder_attention.h"

#include <fmt/format.h>

#include "models/networks/decoder_latent_attention.h"

namespace mulciber {
namespace {

/// Whether a context of this many positions needs LongRoPE's long factors.
bool passes_original_context(const RopeConfig& rope, uint32_t positions) {
  return rope.long_scaling && positions > rope.scaling.original_max_position_embeddings;
}

/// Parts of the matrix with all query heads, then key heads, then value heads, from the file's
/// order.
std::vector<LinearPart> qkv_parts(const DecoderBuild& build, uint32_t layer) {
  const DecoderAttention& attention = build.config.attention;
  const DecoderNames& names = build.names();
  const uint64_t H = attention.head_size, heads = attention.heads, groups = attention.kv_heads;
  const uint64_t Q = attention.query_columns(), K = attention.key_columns();
  if (!names.qkv)
    return {{build.in_layer(layer, names.q), Q},
            {build.in_layer(layer, names.k), K},
            {build.in_layer(layer, names.v), K}};
  const WeightNames file = build.in_layer(layer, names.qkv);
  const uint64_t rows = Q + 2 * K;
  if (!build.config.files.qkv_grouped) return {{file, rows}};
  std::vector<LinearPart> parts;
  const uint64_t queries = heads / groups * H, group = queries + 2 * H;
  for (uint64_t g = 0; g < groups; ++g) parts.push_back({file, queries, rows, g * group});
  for (uint64_t g = 0; g < groups; ++g) parts.push_back({file, H, rows, g * group + queries});
  for (uint64_t g = 0; g < groups; ++g) parts.push_back({file, H, rows, g * group + queries + H});
  return parts;
}

void add_query_key_norms(const DecoderBuild& build, uint32_t layer, CausalAttention& attention) {
  const DecoderAttention& described = build.config.attention;
  const DecoderNames& names = build.names();
  const uint64_t H = described.head_size, heads = described.heads, groups = described.kv_heads;
  const uint64_t Q = described.query_columns(), K = described.key_columns();
  const auto gains = [&](const char* part, const Shape& shape) {
    return WeightSource{with_ending(build.in_layer(layer, part), ".weight"), shape,
                        build.config.files.gains};
  };
  const auto weight = [&](const char* part, const Shape& shape, std::vector<WeightSource> sources) {
    return build.weights.tensor(
        {layer_prefix(layer) + part, WeightRole::kVector, shape, std::move(sources)});
  };
  switch (described.qk_norm) {
    case QueryKeyNorm::kNone: break;
    case QueryKeyNorm::kPerHead:
      attention.qk_gains =
          weight("qk_norm", {2, H}, {gains(names.q_norm, {H}), gains(names.k_norm, {H})});
      break;
    case QueryKeyNorm::kOwnGains:
      attention.group_gains.push_back(
          weight("qk_norm", {heads + groups, H},
                 {gains(names.q_norm, {heads, H}), gains(names.k_norm, {groups, H})}));
      break;
    case QueryKeyNorm::kAllHeads:
      attention.group_gains.push_back(
          weight("q_norm", {Q}, {gains(names.q_norm, {Q})}).reshaped({1, Q}));
      attention.group_gains.push_back(
          weight("k_norm", {K}, {gains(names.k_norm, {K})}).reshaped({1, K}));
      break;
  }
}

}  // namespace

std::vector<CausalAttention::Rope> decoder_ropes(const DecoderBuild& build, uint32_t positions) {
  std::vector<CausalAttention::Rope> ropes;
  for (const RopeConfig& rope : build.config.ropes) {
    const std::string name = fmt::format("rope.{}", ropes.size());
    const auto angles = [&](const std::string& weight, const RopeScaling& scaling) {
      return build.weights.computed(
          {weight,
           {positions, rope.rotated},
           [positions, scaling, rotated = rope.rotated, base = rope.base] {
             return rope_angles(positions, rotated, base, scaling);
           }});
    };
    CausalAttention::Rope& made = ropes.emplace_back(
        CausalAttention::Rope{.angles = angles(name, rope.scaling),
                              .rotated = rope.rotated,
                              .interleaved = rope.pairs == RotaryPairs::kNeighbours});
    if (!passes_original_context(rope, positions)) continue;
    made.long_angles = angles(name + ".long", *rope.long_scaling);
    made.original_context = static_cast<uint32_t>(rope.scaling.original_max_position_embeddings);
  }
  return ropes;
}

CausalAttention decoder_attention(const DecoderBuild& build, uint32_t layer,
                                  const std::vector<CausalAttention::Rope>& ropes) {
  const DecoderConfig& config = build.config;
  const DecoderAttention& described = config.attention;
  const DecoderLayerConfig& of_layer = config.layers[layer];
  const std::string name = layer_prefix(layer);
  CausalAttention attention = {.heads = described.heads,
                               .kv_heads = described.kv_heads,
                               .head_size = described.head_size,
                               .scale = described.scale,
                               .soft_cap = described.soft_cap,
                               .window = of_layer.window,
                               .sinks = described.sinks,
                               .clip = described.clip,
                               .centers_groups = config.norms.kind == NormKind::kLayer,
                               .qk_epsilon = config.norms.epsilon,
                               .appends = build.types.folded_appends};
  if (of_layer.rope) attention.rope = ropes[*of_layer.rope];
  if (described.latent) {
    // Heads share one key, whose columns are also the value: no attention kernel appends such
    // keys.
    attention.appends = false;
    attention.latent = decoder_latent_attention(build, layer);
    attention.kv_heads = 1;
    attention.head_size = attention.latent->key_columns();
    attention.value_size = described.latent->rank;
  } else {
    attention.qkv =
        build.linear(name + "qkv", qkv_parts(build, layer), config.width, described.qkv_bias);
  }
  add_query_key_norms(build, layer, attention);
  attention.out = build.linear(name + "out",
                               {{build.in_layer(layer, build.names().attention_out), config.width}},
                               described.value_columns(), described.out_bias);
  return attention;
}

std::vector<float> decoder_sinks(const DecoderBuild& build, uint32_t layer) {
  const WeightNames names = any_ending(build.in_layer(layer, build.names().sinks), ".weight");
  return build.weights.values(
      build.vector(layer_prefix(layer) + "sinks", names, {build.config.attention.heads}));
}

}  // namespace mulciber
