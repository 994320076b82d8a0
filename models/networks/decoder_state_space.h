// State-space layers of a decoder-only network.
#pragma once

#include "layers/state_space.h"
#include "models/networks/decoder_build.h"

namespace mulciber {

/// A layer of DecoderConfig::state_space.
StateSpace decoder_state_space(const DecoderBuild& build, uint32_t layer);

}  // namespace mulciber
