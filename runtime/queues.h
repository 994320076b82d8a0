// Which queues of a device are taken.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/vulkan.h"

namespace mulciber {

struct QueuePlace {
  uint32_t family = 0, index = 0;
  bool operator==(const QueuePlace&) const = default;
};

/// A queue that computes beside queue 0 of family `first`: another one of that family, else of
/// another one.
std::optional<QueuePlace> second_compute_queue(std::span<const VkQueueFamilyProperties> families,
                                               uint32_t first);

}  // namespace mulciber
