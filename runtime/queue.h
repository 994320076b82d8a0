// A queue: every submission, in order, with what tells that it has ended.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "mulciber/host_device.h"
#include "runtime/vulkan.h"

namespace mulciber {

/// A submission to wait for; tickets of one device complete in order.
using Ticket = uint64_t;

/// What a submission waits for and tells.
struct SubmissionSemaphores {
  std::vector<VkSemaphore> waits;
  std::vector<VkPipelineStageFlags> wait_stages;  // of each
  std::vector<VkSemaphore> signals;
  /// Of timeline semaphores, in the order of waits and signals; ignored for binary ones. Empty:
  /// none is a timeline semaphore.
  std::vector<uint64_t> wait_values, signal_values;
};

/// Thread-safe. Results are those of the Vulkan calls. Whoever waits holds no lock that a
/// submission needs.
class Queue {
 public:
  Queue(const DeviceFunctions& vk, VkDevice device, HostQueue queue);
  /// What is in flight must have ended, or the device be lost.
  ~Queue();
  Queue(const Queue&) = delete;

  VkResult submit(std::span<const VkCommandBuffer> commands, const SubmissionSemaphores& semaphores,
                  Ticket* ticket);
  /// Waits for the oldest submission in flight, if it is not later than `ticket`; no value where
  /// there is none. VK_TIMEOUT where it has not ended in time.
  std::optional<VkResult> wait_next(Ticket ticket, uint64_t timeout_ns);
  /// VK_SUCCESS, VK_NOT_READY, or an error.
  VkResult status(Ticket ticket);
  Ticket last() const;
  /// Makes a timeline semaphore that every later submission sets to its ticket. One for the device
  /// and not for each who asks: drivers that emulate it (lavapipe of Mesa 22.3) set it after the
  /// submission's fence, when the semaphore of a task could be gone.
  VkResult make_timeline();
  /// Null where there is none.
  VkSemaphore timeline() const { return timeline_; }
  VkQueue handle() const { return queue_.queue; }
  uint32_t family() const { return queue_.family; }

 private:
  /// Given back when nobody waits for it any more.
  struct Fence {
    const Queue& owner;
    VkFence handle = VK_NULL_HANDLE;
    explicit Fence(const Queue& queue) : owner(queue) {}
    ~Fence();
  };
  struct Pending {
    Ticket ticket;
    std::shared_ptr<Fence> fence;
  };
  VkResult free_fence(std::shared_ptr<Fence>* fence);

  const DeviceFunctions& vk_;
  VkDevice device_;
  HostQueue queue_;
  mutable std::mutex mutex_;
  std::deque<Pending> pending_;
  std::vector<std::shared_ptr<Fence>> fences_;  // that are not pending; some may be waited for
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  Ticket last_ = 0;
};

}  // namespace mulciber
