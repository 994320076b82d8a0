// Keeps a device's second queue busy while cases run on the first, to expose drivers that confuse
// the two.
#pragma once

#include <atomic>
#include <thread>

#include "runtime/device.h"

namespace mulciber::conformance {

class BackgroundLoad {
 public:
  /// Starts the load on the device's second queue. Does nothing where the device was opened without
  /// one, or has none. Throws DeviceError.
  explicit BackgroundLoad(Device& device)
      : BackgroundLoad(device, device.second_queue(), device.second_queue_family()) {}
  /// Starts the load on a queue that nothing else uses meanwhile.
  BackgroundLoad(Device& device, VkQueue queue, uint32_t family);
  /// Ends the load and waits until its queue is idle.
  ~BackgroundLoad();
  BackgroundLoad(const BackgroundLoad&) = delete;

  /// Number of submissions that have ended.
  uint64_t submissions() const { return submissions_; }

 private:
  void make_buffer();
  void record();
  void run();
  void destroy();

  Device& device_;
  VkQueue queue_;
  uint32_t family_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> submissions_{0};
  std::thread thread_;
};

}  // namespace mulciber::conformance
