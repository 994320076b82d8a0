// Multi-head latent attention of a decoder-only network.
#pragma once

#include "models/networks/decoder_build.h"

namespace mulciber {

/// The projections of a layer, of a configuration with DecoderAttention::latent.
LatentProjection decoder_latent_attention(const DecoderBuild& build, uint32_t layer);

}  // namespace mulciber
