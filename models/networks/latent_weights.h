// Rows of the weight table for latent attention.
#pragma once

#include <functional>
#include <string>

#include "models/families/decoder_config.h"
#include "models/networks/linear_weights.h"

namespace mulciber {

/// Adds the way from the narrow vector to the keys of all heads, then to all their values: in files
/// head by head in one matrix, or keys (transposed) and values each in one of three dimensions.
/// file: what files call a part of that layer, without ".weight".
void add_key_value_up(WeightTable& table, const DecoderConfig& config, const std::string& name,
                      const std::function<WeightNames(const char* part)>& file);

}  // namespace mulciber
