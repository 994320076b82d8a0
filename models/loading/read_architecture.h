// Reading a checkpoint's architecture.
#pragma once

#include <memory>

#include "models/core/architecture.h"
#include "models/families/registry.h"

namespace mulciber {

/// Reads the configuration of a checkpoint of this family, to plan and load it. Throws ModelError
/// naming file and key.
std::unique_ptr<const Architecture> read_architecture(const Checkpoint& checkpoint,
                                                      const ModelFamily& family);

}  // namespace mulciber
