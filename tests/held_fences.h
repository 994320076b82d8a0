// An application's function of submission that can hold fences back: their submissions run, and
// count as under way until the test releases them.
#pragma once

#include <vector>

#include "tests/vulkan_application.h"

namespace mulciber::tests {

class HeldFences {
 public:
  explicit HeldFences(const VulkanApplication& application) : application_(application) {}
  ~HeldFences() { release(); }
  HeldFences(const HeldFences&) = delete;

  /// Later submissions are held.
  void hold() { holding_ = true; }
  /// Signals the fences that are held, once their submissions have ended; later ones are not held.
  void release() {
    holding_ = false;
    for (const VkFence fence : held_)
      application_.vk.vkQueueSubmit(application_.queue, 0, nullptr, fence);
    held_.clear();
  }
  /// For ApplicationQueue::submit.
  VkResult submit(VkQueue queue, const VkSubmitInfo& info, VkFence fence) {
    if (!holding_) return application_.vk.vkQueueSubmit(queue, 1, &info, fence);
    held_.push_back(fence);
    return application_.vk.vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE);
  }

 private:
  const VulkanApplication& application_;
  std::vector<VkFence> held_;
  bool holding_ = false;
};

}  // namespace mulciber::tests
