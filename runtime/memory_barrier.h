#pragma once

#include "runtime/vulkan.h"

namespace mulciber {

/// What a memory barrier waits for, or holds back: stages of the pipeline and their accesses.
struct BarrierScope {
  VkPipelineStageFlags stages = 0;
  VkAccessFlags accesses = 0;
};

/// Everything `from` names in earlier commands of the queue happens before, and is seen by, what
/// `to` names in later ones.
inline void memory_barrier(const DeviceFunctions& vk, VkCommandBuffer commands,
                           const BarrierScope& from, const BarrierScope& to) {
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = from.accesses;
  barrier.dstAccessMask = to.accesses;
  vk.vkCmdPipelineBarrier(commands, from.stages, to.stages, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

}  // namespace mulciber
