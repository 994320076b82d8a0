// Rows of the weight table for a state-space layer.
#pragma once

#include <functional>
#include <string>

#include "models/core/linear_weights.h"
#include "models/families/decoder_config.h"

namespace mulciber {

/// Adds the weights of a layer of config.state_space under `name`. file: returns the names in files
/// of a part of the layer, without ".weight".
void add_state_space(WeightTable& table, const DecoderConfig& config, const std::string& name,
                     const std::function<WeightNames(const char* part)>& file);

}  // namespace mulciber
