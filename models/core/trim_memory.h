// Gives memory back that models keep for later calls.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/device.h"

namespace mulciber {

/// Calls `release`, which frees buffers, and gives empty blocks back to the driver or to the
/// application's allocator. Returns the bytes of these blocks. Throws DeviceError where the device
/// is lost.
template <typename Release>
uint64_t trim_memory(Device& device, const Release& release) {
  device.require_alive();
  Allocator& memory = device.memory();
  const uint64_t reserved = memory.reserved();
  release();
  memory.trim();
  return reserved - std::min(reserved, memory.reserved());  // another thread may take some
}

}  // namespace mulciber
