// The priority of a device's queues among those of other programs.
#pragma once

#include "mulciber/device.h"
#include "runtime/vulkan.h"

namespace mulciber {

/// Calls vkCreateDevice with queues of priority `*priority`, or of the next lower one that the
/// driver grants, and sets `*priority` to the granted one. `info` itself must not ask for a
/// priority.
VkResult create_with_priority(const InstanceFunctions& vk, VkPhysicalDevice physical,
                              const VkDeviceCreateInfo& info, QueuePriority* priority,
                              VkDevice* device);

const char* name_of(QueuePriority priority);

}  // namespace mulciber
