// A decoder-only model's configuration, whatever its family and the format of its files.
#pragma once

#include <memory>

#include "models/core/architecture.h"
#include "models/families/decoder_family.h"
#include "models/networks/decoder_network.h"

namespace mulciber {

class AdapterStack;  // models/adapters/adapter_stack.h

/// A checkpoint's configuration as its family reads it, with what generation_config.json says.
/// Throws ModelError, also when it is of no decoder-only family.
DecoderConfig read_decoder_config(const Checkpoint& checkpoint);
/// The configuration, to be planned and loaded. Throws ModelError.
std::unique_ptr<const Architecture> read_decoder(const Checkpoint& checkpoint,
                                                 const DecoderFamily& family);

/// What the network computes in on a device. Throws ModelError where options do not go together.
NetworkTypes network_types(const Capabilities& device, const ModelOptions& options,
                           const AdapterStack* adapters = nullptr);

/// Adapters that stand beside the weights, as `options` ask for them; null: none. Throws ModelError
/// as AdapterStack.
std::shared_ptr<const AdapterStack> stacked_adapters(const Checkpoint& checkpoint,
                                                     const DecoderConfig& config,
                                                     const ModelOptions& options);

Extents extents_of(const DecoderConfig& config);
/// Tokens of the longest sequence.
uint32_t context_of(const DecoderConfig& config, const ModelOptions& options);
/// Device memory of the weights, and of the contexts that `options` ask for on top.
MemoryPrediction predict_decoder_memory(const Capabilities& device, const Checkpoint& checkpoint,
                                        const DecoderConfig& config, const ModelOptions& options);

}  // namespace mulciber
