#include "models/networks/decoder_latent_attention.h"

namespace mulciber {
namespace {

/// (1, size): gains of the norm of a latent vector.
Tensor latent_gains(const DecoderBuild& build, uint32_t layer, const char* name, const char* part,
                    uint64_t size) {
  return build
      .vector(layer_prefix(layer) + name, with_ending(build.in_layer(layer, part), ".weight"),
              {size})
      .reshaped({1, size});
}

void add_queries(const DecoderBuild& build, uint32_t layer, LatentProjection& projection) {
  const DecoderLatent& latent = *build.config.attention.latent;
  const DecoderNames& names = build.names();
  const std::string name = layer_prefix(layer);
  const bool narrow = latent.query_rank > 0;
  if (narrow) {
    projection.query_down = build.linear(
        name + "query_down", {{build.in_layer(layer, names.query_down), latent.query_rank}},
        build.config.width, false);
    projection.query_gains =
        latent_gains(build, layer, "query_norm", names.query_norm, latent.query_rank);
  }
  // The rotated elements come first in each head, where kernels rotate them.
  const uint64_t H = build.config.attention.head_size, heads = projection.heads;
  const WeightNames queries = build.in_layer(layer, narrow ? names.query_up : names.q);
  std::vector<LinearPart> parts;
  for (uint64_t head = 0; head < heads; ++head) {
    parts.push_back({queries, latent.rotated, heads * H, head * H + projection.rest});
    parts.push_back({queries, projection.rest, heads * H, head * H});
  }
  projection.query =
      build.linear(name + "query", parts, narrow ? latent.query_rank : build.config.width, false);
}

void add_keys_and_values(const DecoderBuild& build, uint32_t layer, LatentProjection& projection) {
  const DecoderLatent& latent = *build.config.attention.latent;
  const DecoderNames& names = build.names();
  const WeightNames down = build.in_layer(layer, names.key_value_down);
  const uint64_t both = latent.rank + uint64_t{latent.rotated};
  projection.down =
      build.linear(layer_prefix(layer) + "key_value_down",
                   {{down, latent.rotated, both, latent.rank}, {down, latent.rank, both, 0}},
                   build.config.width, false);
  projection.gains =
      latent_gains(build, layer, "key_value_norm", names.key_value_norm, latent.rank);
}

/// Up-projections from the latent vector to keys and values of all heads, from one matrix, in which
/// the rows of each head's key precede those of its value.
void add_joint_up(const DecoderBuild& build, uint32_t layer, LatentProjection& projection) {
  const uint32_t step = projection.rest + projection.value_size;
  const Tensor matrix = build.weights.tensor(linear_matrix(
      layer_prefix(layer) + "key_value_up",
      {{build.in_layer(layer, build.names().key_value_up), uint64_t{projection.heads} * step}},
      projection.rank, false, build.config.files.matrices));
  projection.key_up = {matrix, 0, step, true};
  projection.value_up = {matrix, projection.rest, step, false};
}

/// Up-projections from two three-dimensional tensors, of keys (transposed) and of values.
void add_separate_up(const DecoderBuild& build, uint32_t layer, LatentProjection& projection) {
  const auto matrices = [&](const char* name, const char* part, uint32_t rows, uint32_t columns) {
    const uint64_t heads = projection.heads;
    const Tensor weight =
        build.weights.tensor({layer_prefix(layer) + name,
                              WeightRole::kMatrix,
                              {heads * rows, columns},
                              {WeightSource{with_ending(build.in_layer(layer, part), ".weight"),
                                            {heads, rows, columns}}}});
    return HeadMatrices{weight, 0, rows, false};
  };
  projection.key_up = matrices("key_up.weight", build.names().k, projection.rank, projection.rest);
  projection.value_up =
      matrices("value_up.weight", build.names().v, projection.value_size, projection.rank);
}

/// Adds adapters of the joint up-projection, which apply to separate ones too, and of separate
/// ones.
void add_up_adapters(const DecoderBuild& build, uint32_t layer, LatentProjection& projection) {
  const std::string name = layer_prefix(layer);
  if (const auto joint = build.low_rank(name + "key_value_up.weight")) {
    const uint32_t step = projection.rest + projection.value_size;
    projection.key_up.low_ranks.push_back({*joint, 0, step, true});
    projection.value_up.low_ranks.push_back({*joint, projection.rest, step, false});
  }
  if (build.names().key_value_up) return;
  if (const auto keys = build.low_rank(name + "key_up.weight"))
    projection.key_up.low_ranks.push_back({*keys, 0, projection.rank, false});
  if (const auto values = build.low_rank(name + "value_up.weight"))
    projection.value_up.low_ranks.push_back({*values, 0, projection.value_size, false});
}

}  // namespace

LatentProjection decoder_latent_attention(const DecoderBuild& build, uint32_t layer) {
  const DecoderAttention& attention = build.config.attention;
  const DecoderLatent& latent = *attention.latent;
  LatentProjection projection = {.epsilon = build.config.norms.epsilon,
                                 .heads = attention.heads,
                                 .rotated = latent.rotated,
                                 .rest = attention.head_size - latent.rotated,
                                 .rank = latent.rank,
                                 .value_size = latent.value_size};
  add_queries(build, layer, projection);
  add_keys_and_values(build, layer, projection);
  if (build.names().key_value_up)
    add_joint_up(build, layer, projection);
  else
    add_separate_up(build, layer, projection);
  add_up_adapters(build, layer, projection);
  return projection;
}

}  // namespace mulciber
