// Architecture names and the classes that build them.
#pragma once

#include <memory>
#include <span>

#include "models/marian.h"

namespace mulciber {

struct ModelFamily {
  const char* model_type;  // of config.json
  std::unique_ptr<Model> (*open)(Device& device, const Checkpoint& checkpoint,
                                 const ModelOptions& options);
};
/// Every family this library can run.
std::span<const ModelFamily> model_families();

/// Builds the model of a checkpoint. Throws ModelError naming the families there are when its
/// model_type is none of them, and what the family's constructor throws.
std::unique_ptr<Model> open_model(Device& device, const Checkpoint& checkpoint,
                                  const ModelOptions& options = {});

}  // namespace mulciber
