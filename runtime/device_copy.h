// Copies within device memory.
#pragma once

#include <span>

#include "runtime/tensor.h"

namespace mulciber {

class Device;

struct DeviceCopy {
  BufferView from, to;  // of one size
};

/// Copies in order: each sees what those before it, and all that was submitted before, have
/// written. Returns when all are done.
void copy(Device& device, std::span<const DeviceCopy> copies);

}  // namespace mulciber
