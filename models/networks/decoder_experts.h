// Mixtures of experts of a decoder-only network.
#pragma once

#include "models/networks/decoder_build.h"

namespace mulciber {

/// MixtureOfExperts::rules, which all layers share.
Tensor decoder_expert_rules(const DecoderBuild& build);

/// The experts of a layer, of a configuration with DecoderFeedForward::experts. rules:
/// decoder_expert_rules().
MixtureOfExperts decoder_experts(const DecoderBuild& build, uint32_t layer, const Tensor& rules);

}  // namespace mulciber
