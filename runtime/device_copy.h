// Copies within device memory.
#pragma once

#include <span>

#include "runtime/tensor.h"

namespace mulciber {

class Device;

struct DeviceCopy {
  BufferView from, to;  // ranges of equal size
};

/// Copies in order: each copy sees what earlier copies and all work submitted before have written.
/// Returns when all copies are done.
void copy(Device& device, std::span<const DeviceCopy> copies);

}  // namespace mulciber
