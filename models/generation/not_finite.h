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

/// Throws LogitsError: logits are not finite, and why: the weight of the file that holds NaN or
/// infinity, or else the first layer whose output does. whose: "after 5 tokens". weights may be
/// null. first_layer: names it ("layer 3"), or gives nothing where none is found; asked for only
/// where all weights are finite.
[[noreturn]] void refuse_logits(Device& device, const Weights* weights, const std::string& whose,
                                const std::function<std::string()>& first_layer);
/// The same of any numbers: what they are ("logits of a text") and whose.
[[noreturn]] void refuse_numbers(Device& device, const Weights* weights, const std::string& where,
                                 const std::function<std::string()>& first_layer);

/// The first layer of a network whose output for a row's first tokens is not finite. control,
/// words, tensors: of a batch, whose caches lose what they held.
std::string first_layer_not_finite(Device& device, const DecoderNetwork& network,
                                   const BatchLayout& layout, const BatchTensors& tensors,
                                   ControlWords words, uint32_t row, std::span<const uint32_t> ids);
/// The same for the first of a sequence's tokens, over keys and values of its own.
std::string first_layer_not_finite(Device& device, const DecoderNetwork& network,
                                   std::span<const uint32_t> ids);

}  // namespace mulciber
