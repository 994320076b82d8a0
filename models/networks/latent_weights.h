// Rows of the weight table for latent attention.
#pragma once

#include <functional>
#include <string>

#include "models/core/linear_weights.h"
#include "models/families/decoder_config.h"

namespace mulciber {

/// Adds the up-projections from the latent vector to keys and values of all heads, in the file's
/// layout: one matrix, in which the rows of each head's key precede those of its value; or two
/// three-dimensional tensors, of keys (transposed) and of values.
/// file: returns the names in files of a part of the layer, without ".weight".
void add_key_value_up(WeightTable& table, const DecoderConfig& config, const std::string& name,
                      const std::function<WeightNames(const char* part)>& file);

}  // namespace mulciber
