// Loading weights with adapters merged, at once or in parts.
#pragma once

#include <memory>
#include <string>

#include "checkpoints/weights.h"
#include "models/adapters/adapter_stack.h"
#include "models/core/device_weights.h"
#include "models/core/model_options.h"

namespace mulciber {

/// The adapters of `options` to merge into weights; null: none. Throws ModelError as AdapterStack.
std::shared_ptr<const AdapterStack> merged_adapters(const WeightTable& table,
                                                    const Checkpoint& checkpoint,
                                                    const ModelOptions& options);

/// Begins loading in parts. The checkpoint must outlive the result. Throws as WeightReader, and as
/// merged_adapters().
std::unique_ptr<WeightsLoad> start_weights(Device& device, WeightTable table,
                                           const Checkpoint& checkpoint, const std::string& family,
                                           const ModelOptions& options);
/// Returns options.weights if they are already loaded, and else loads the weights. Throws as
/// start_weights().
Weights weights_of(Device& device, const WeightTable& table, const Checkpoint& checkpoint,
                   const std::string& family, const ModelOptions& options);

}  // namespace mulciber
