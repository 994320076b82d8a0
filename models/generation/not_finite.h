// Where logits that are NaN or infinite come from.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/core/device_weights.h"
#include "models/generation/decoder_programs.h"
#include "mulciber/error.h"

namespace mulciber {

/// Throws LogitsError, which says why logits are not finite: it names the weight of the file that
/// holds NaN or infinity, or else the first layer whose output does. whose: "after 5 tokens".
/// weights: may be null. first_layer: names the layer ("layer 3"), or returns nothing where none is
/// found; called only where all weights are finite.
[[noreturn]] void refuse_logits(Device& device, const Weights* weights, const std::string& whose,
                                const std::function<std::string()>& first_layer);
/// Throws LogitsError for any numbers. where: what they are and whose ("logits of a text").
[[noreturn]] void refuse_numbers(Device& device, const Weights* weights, const std::string& where,
                                 const std::function<std::string()>& first_layer);

/// The first layer of a network whose output for a row's first tokens is not finite; empty: none
/// was found. The state's caches are overwritten.
std::string first_layer_not_finite(DecoderState& state, uint32_t row,
                                   std::span<const uint32_t> ids);
/// Finds that layer for the first of a sequence's tokens, in a KV cache of its own.
std::string first_layer_not_finite(Device& device, const DecoderNetwork& network,
                                   std::span<const uint32_t> ids);

}  // namespace mulciber
