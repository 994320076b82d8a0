// Weights as loading asks for them: with adapters merged, at once or a part at a time.
#pragma once

#include <memory>
#include <string>

#include "checkpoints/weights.h"
#include "models/adapters/adapter_stack.h"
#include "models/core/device_weights.h"
#include "models/core/model_options.h"

namespace mulciber {

/// Adapters that `options` ask to be merged into weights; null: none. Throws ModelError as
/// AdapterStack.
std::shared_ptr<const AdapterStack> merged_adapters(const WeightTable& table,
                                                    const Checkpoint& checkpoint,
                                                    const ModelOptions& options);

/// checkpoint outlives it. Throws as Weights, and as merged_adapters().
std::unique_ptr<WeightsLoad> start_weights(Device& device, WeightTable table,
                                           const Checkpoint& checkpoint, const std::string& family,
                                           const ModelOptions& options);
/// The weights that load() of a model begins with: those of `options` where they are there already.
/// Throws as start_weights().
Weights weights_of(Device& device, const WeightTable& table, const Checkpoint& checkpoint,
                   const std::string& family, const ModelOptions& options);

}  // namespace mulciber
