// The share of a GPU's compute units that later dispatches of a command buffer take beside other
// work (VK_NV_compute_occupancy_priority).
#pragma once

#include "runtime/vulkan.h"

namespace mulciber {

/// The priority at the start of every command buffer.
constexpr float kNormalOccupancy = VK_COMPUTE_OCCUPANCY_PRIORITY_NORMAL_NV;

inline void set_occupancy_priority(const DeviceFunctions& vk, VkCommandBuffer commands,
                                   float priority) {
  VkComputeOccupancyPriorityParametersNV parameters = {};
  parameters.sType = VK_STRUCTURE_TYPE_COMPUTE_OCCUPANCY_PRIORITY_PARAMETERS_NV;
  parameters.occupancyPriority = priority;
  vk.vkCmdSetComputeOccupancyPriorityNV(commands, &parameters);
}

}  // namespace mulciber
