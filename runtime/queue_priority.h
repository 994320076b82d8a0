// The priority of a device's queues among those of other programs.
#pragma once

#include "mulciber/device.h"
#include "runtime/vulkan.h"

namespace mulciber {

/// vkCreateDevice, its queues of the priority `*priority`, or of the next lower one that the driver
/// grants, which `*priority` then is. `info` does not ask for one by itself.
VkResult create_with_priority(const InstanceFunctions& vk, VkPhysicalDevice physical,
                              const VkDeviceCreateInfo& info, QueuePriority* priority,
                              VkDevice* device);

const char* name_of(QueuePriority priority);

}  // namespace mulciber
