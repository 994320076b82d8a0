#include "models/networks/decoder_support.h"

#include <vector>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/state_space.h"
#include "shaders/attention.h"

namespace mulciber {
namespace {

void refuse_if(bool asked, const char* what) {
  if (asked)
    throw ModelError("the network", fmt::format("has {}, which is not supported", what),
                     "use another model");
}

void require_norms(const DecoderConfig& config) {
  const DecoderNorms& norms = config.norms;
  const bool layer_norm = norms.kind == NormKind::kLayer;
  const bool parallel = config.residual != Residual::kSequential;
  refuse_if(layer_norm && norms.place != NormPlace::kBefore, "layer norms after its sublayers");
  refuse_if(parallel && norms.place != NormPlace::kBefore,
            "sublayers side by side with norms after them");
  refuse_if(!layer_norm && norms.bias, "root-mean-square norms with a bias");
  refuse_if(!layer_norm && !norms.gains, "root-mean-square norms without weights");
  refuse_if(layer_norm && config.residual_multiplier != 1,
            "layer norms, and a multiplier onto what joins its residual stream");
  refuse_if(config.embedding.learned_positions && config.residual_multiplier != 1,
            "learned positions, and a multiplier onto what joins its residual stream");
}

void require_attention(const DecoderConfig& config) {
  const DecoderAttention& attention = config.attention;
  const bool qk_norm = attention.qk_norm != QueryKeyNorm::kNone;
  for (const DecoderLayerConfig& layer : config.layers)
    refuse_if(attention.qk_norm == QueryKeyNorm::kPerHead && !layer.rope,
              "queries and keys that are normalized and not rotated");
  if (!attention.latent && attention.head_size > MAX_HEAD_SIZE)
    throw ModelError("the network",
                     fmt::format("has heads of {} columns, and attention takes up to {}",
                                 attention.head_size, MAX_HEAD_SIZE),
                     "use another model");
  refuse_if(attention.latent && (attention.qkv_bias || qk_norm || attention.clip > 0),
            "latent attention with biases, norms of heads or clipping");
  refuse_if(attention.latent && attention.kv_heads != attention.heads,
            "latent attention whose heads share keys");
}

void require_feed_forward(const DecoderConfig& config) {
  const DecoderFeedForward& feed_forward = config.feed_forward;
  if (!feed_forward.experts) return;
  refuse_if(feed_forward.bias && feed_forward.experts->shared_hidden > 0,
            "shared experts with biases");
  refuse_if(config.norms.kind == NormKind::kLayer, "experts between layer norms");
  refuse_if(feed_forward.kind == FeedForwardKind::kPlain, "experts without gates");
}

}  // namespace

void require_supported(const DecoderConfig& config) {
  require_norms(config);
  require_attention(config);
  require_feed_forward(config);
  if (const auto& state_space = config.state_space)
    refuse_if(state_space->states > kMostScanStates || state_space->taps > kMostTaps,
              "state-space layers of more states or taps than a lane holds");
}

void require_types(const DecoderConfig& config, const NetworkTypes& types) {
  const DecoderAttention& attention = config.attention;
  // The rotated part of a latent key and the rest each begin a block.
  const std::vector<uint32_t> in_blocks =
      attention.latent ? std::vector<uint32_t>{attention.latent->rotated, attention.latent->rank}
                       : std::vector<uint32_t>{attention.head_size};
  const uint32_t block = block_elements(types.cache);
  for (const uint32_t size : in_blocks)
    if (size % block != 0)
      throw ModelError("keys and values",
                       fmt::format("in {} are blocks of {}, the model's heads have {}",
                                   name_of(types.cache), block, size),
                       "keep them in f16");
  if (config.state_space && types.activations != DataType::kF32)
    throw ModelError("activations", "in 16 bits do not go with layers that keep a state",
                     "leave them in 32 bits");
}

}  // namespace mulciber
