#pragma once

#include "runtime/vulkan.h"

namespace mulciber {

/// One side of a memory barrier: stages of the pipeline and their accesses.
struct BarrierScope {
  VkPipelineStageFlags stages = 0;
  VkAccessFlags accesses = 0;
};

/// Records a barrier: accesses that `from` names in earlier commands of the queue happen before,
/// and are visible to, accesses that `to` names in later commands.
inline void memory_barrier(const DeviceFunctions& vk, VkCommandBuffer commands,
                           const BarrierScope& from, const BarrierScope& to) {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = from.accesses;
  barrier.dstAccessMask = to.accesses;
  vk.vkCmdPipelineBarrier(commands, from.stages, to.stages, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

}  // namespace mulciber
