// The queue families of a device, and which of their queues are taken.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/vulkan.h"

namespace mulciber {

std::vector<VkQueueFamilyProperties> queue_families(const InstanceFunctions& vk,
                                                    VkPhysicalDevice device);

inline bool computes(const VkQueueFamilyProperties& family) {
  return (family.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
}

std::optional<uint32_t> first_compute_family(std::span<const VkQueueFamilyProperties> families);

struct QueuePlace {
  uint32_t family = 0, index = 0;
  bool operator==(const QueuePlace&) const = default;
};

/// A second compute queue beside queue 0 of family `first`: another queue of that family, else one
/// of another family.
std::optional<QueuePlace> second_compute_queue(std::span<const VkQueueFamilyProperties> families,
                                               uint32_t first);

}  // namespace mulciber
