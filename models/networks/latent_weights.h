// Rows of the weight table for latent attention.
#pragma once

#include <functional>
#include <string>

#include "models/core/linear_weights.h"
#include "models/families/decoder_config.h"

namespace mulciber {

/// Adds the way from the narrow vector to keys and values of all heads as files have it: head by
/// head in one matrix, the rows of a head's key before those of its value; or of keys (transposed)
/// and of values each in one of three dimensions.
/// file: what files call a part of that layer, without ".weight".
void add_key_value_up(WeightTable& table, const DecoderConfig& config, const std::string& name,
                      const std::function<WeightNames(const char* part)>& file);

}  // namespace mulciber
