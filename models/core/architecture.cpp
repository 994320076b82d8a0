#include "models/core/architecture.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/core/device_weights.h"

namespace mulciber {

std::string model_type(const Checkpoint& checkpoint) {
  return checkpoint.gguf() ? checkpoint.gguf()->architecture() : checkpoint.model_type();
}

MemoryPrediction Architecture::predict(const Capabilities&, const ModelOptions& options) const {
  const DeclaredWeights weights = declare();
  return {.weight_bytes =
              weights.computed_bytes() + weight_bytes(weights.table(), checkpoint_,
                                                      model_type(checkpoint_), options.matrices)};
}

void Architecture::check_plan(Device& device, const ModelOptions& options) const {
  const MemoryPrediction plan = predict(device.capabilities(), options);
  if (options.on_plan) options.on_plan(plan);
  const uint32_t longest = extents().context;
  const uint32_t context = options.context > 0 ? std::min(options.context, longest) : longest;
  require_model(device, plan.weight_bytes + plan.context_bytes, options,
                plan.context_bytes > 0
                    ? fmt::format("the model with a context of {} tokens", context)
                    : "the model");
}

std::unique_ptr<Model> Architecture::load(Device& device, const ModelOptions& options) const {
  check_plan(device, options);
  return make(device, options);
}

}  // namespace mulciber
