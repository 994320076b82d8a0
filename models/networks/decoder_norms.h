// Norms of a decoder-only network.
#pragma once

#include "models/networks/decoder_build.h"

namespace mulciber {

/// The norm of the embedding, for layer 0.
Norm decoder_first_norm(const DecoderBuild& build);
/// Adds the norms of a layer. A norm belongs to the sublayer before it, whose result it adds to the
/// stream.
void add_norms(const DecoderBuild& build, uint32_t index, CausalLayer& layer);

/// Makes norms write q8_1 blocks where only an integer product reads their result, and if `folded`
/// moves norms into the products after them.
void join_norms(CausalDecoder& decoder, bool folded);

}  // namespace mulciber
