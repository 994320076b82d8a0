// From a family's record to its architecture.
#pragma once

#include <memory>

#include "models/core/architecture.h"
#include "models/families/registry.h"

namespace mulciber {

/// A checkpoint of that family, to be planned and loaded. Throws ModelError naming file and key.
std::unique_ptr<const Architecture> read_architecture(const Checkpoint& checkpoint,
                                                      const ModelFamily& family);

}  // namespace mulciber
