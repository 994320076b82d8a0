// Keeps a device's second queue busy while cases run on the first, for drivers that mix up the two.
#pragma once

#include <atomic>
#include <thread>

#include "runtime/device.h"

namespace mulciber::conformance {

class BackgroundLoad {
 public:
  /// Starts the load where the device was opened with a second queue; does nothing where it has none.
  /// Throws DeviceError.
  explicit BackgroundLoad(Device& device);
  /// Ends it, and waits until its queue is idle.
  ~BackgroundLoad();
  BackgroundLoad(const BackgroundLoad&) = delete;

 private:
  void make_buffer();
  void record();
  void run();
  void destroy();

  Device& device_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace mulciber::conformance
