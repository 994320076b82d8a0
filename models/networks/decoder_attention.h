// Attention of a decoder-only network.
#pragma once

#include <vector>

#include "models/networks/decoder_build.h"

namespace mulciber {

/// The rotary embeddings of a configuration, in its order, with angles for positions below
/// `positions`.
std::vector<CausalAttention::Rope> decoder_ropes(const DecoderBuild& build, uint32_t positions);

/// ropes: decoder_ropes().
CausalAttention decoder_attention(const DecoderBuild& build, uint32_t layer,
                                  const std::vector<CausalAttention::Rope>& ropes);

/// (heads): the logits of a layer's sinks.
std::vector<float> decoder_sinks(const DecoderBuild& build, uint32_t layer);

}  // namespace mulciber
