// The images of a window, into which rendered frames are copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "apps/viewer/frames.h"

namespace mulciber::viewer {

class Swapchain {
 public:
  explicit Swapchain(graphics::Device& device) : device_(device) {}
  ~Swapchain();
  Swapchain(const Swapchain&) = delete;
  Swapchain& operator=(const Swapchain&) = delete;

  /// Makes the swapchain. The device must be idle. extent: the window's. False where the window has
  /// no area.
  bool make(VkExtent2D extent);
  VkExtent2D extent() const { return extent_; }

  /// The next image, in the frame of this slot; none: make() must be called again.
  std::optional<uint32_t> acquire(size_t slot);
  /// Records the copy of an image whose layout is TRANSFER_SRC_OPTIMAL.
  void copy(VkCommandBuffer commands, VkImage image, VkExtent2D extent, uint32_t index);
  /// False where make() must be called again.
  bool present(uint32_t index);

  VkSemaphore acquired(size_t slot) const { return acquired_[slot]; }
  VkSemaphore drawn(uint32_t index) const { return drawn_[index]; }

 private:
  void destroy();

  graphics::Device& device_;
  VkSwapchainKHR swapchain_ = VK_NULL_HANDLE;
  VkExtent2D extent_ = {};
  std::vector<VkImage> images_;
  std::vector<VkSemaphore> acquired_;  // by slot
  std::vector<VkSemaphore> drawn_;     // by image
};

}  // namespace mulciber::viewer
