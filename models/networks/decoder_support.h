// What the layers of decoder-only networks do not support.
#pragma once

#include "models/networks/decoder_network.h"

namespace mulciber {

/// Throws ModelError for features of a configuration that the layers do not support.
void require_supported(const DecoderConfig& config);
/// Throws ModelError for types that do not go with the network.
void require_types(const DecoderConfig& config, const NetworkTypes& types);

}  // namespace mulciber
