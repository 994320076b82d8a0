// A decoder-only model's configuration, whatever its family and the format of its files.
#pragma once

#include <memory>

#include "models/core/architecture.h"
#include "models/families/decoder_family.h"
#include "models/networks/decoder_network.h"

namespace mulciber {

class AdapterStack;  // models/adapters/adapter_stack.h

/// A checkpoint's configuration as its family reads it, with that of generation_config.json. Throws
/// ModelError, also when the family is not decoder-only.
DecoderConfig read_decoder_config(const Checkpoint& checkpoint);
/// An Architecture, by which the model is planned and loaded. Throws ModelError.
std::unique_ptr<const Architecture> read_decoder(const Checkpoint& checkpoint,
                                                 const DecoderFamily& family);

/// Data types and forms of products in which a network computes on a device. Throws ModelError
/// where options exclude each other.
NetworkTypes network_types(const Capabilities& device, const ModelOptions& options,
                           const AdapterStack* adapters = nullptr);

/// Adapters that are kept beside the weights instead of merged, if `options` ask for them; null:
/// none. Throws ModelError as AdapterStack.
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
