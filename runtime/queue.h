// A queue: every submission in order, with the fence that tells that it has ended.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "mulciber/application_device.h"
#include "runtime/vulkan.h"

namespace mulciber {

/// Names a submission to wait for; tickets of one device complete in order.
using Ticket = uint64_t;

/// The semaphores that a submission waits for and signals.
struct SubmissionSemaphores {
  std::vector<VkSemaphore> waits;
  std::vector<VkPipelineStageFlags> wait_stages;  // one for each semaphore of `waits`
  std::vector<VkSemaphore> signals;
  /// Values for timeline semaphores, in the order of waits and signals; ignored for binary ones.
  /// Empty: none is a timeline semaphore.
  std::vector<uint64_t> wait_values, signal_values;
};

/// Thread-safe. Returns the results of the Vulkan calls. A waiting thread holds no lock that a
/// submission needs.
class Queue {
 public:
  /// callbacks: for the objects that the queue makes; may be null, and must outlive it.
  Queue(const DeviceFunctions& vk, VkDevice device, const VkAllocationCallbacks* callbacks,
        ApplicationQueue queue);
  /// Work in flight must have ended, or the device must be lost.
  ~Queue();
  Queue(const Queue&) = delete;

  /// Throws what the application's functions throw; nothing was submitted then.
  VkResult submit(std::span<const VkCommandBuffer> commands, const SubmissionSemaphores& semaphores,
                  Ticket* ticket);
  /// Waits for the oldest submission in flight, if it is not later than `ticket`; no value where
  /// there is none. VK_TIMEOUT where the submission has not ended in time.
  std::optional<VkResult> wait_next(Ticket ticket, uint64_t timeout_ns);
  /// VK_SUCCESS, VK_NOT_READY, or an error.
  VkResult status(Ticket ticket);
  Ticket last() const;
  /// Makes a timeline semaphore that every later submission sets to its ticket. The device has one
  /// for all users: drivers that emulate timeline semaphores (lavapipe of Mesa 22.3) set them after
  /// the submission's fence, when the semaphore of a task could be destroyed already.
  VkResult make_timeline();
  /// Null where make_timeline() was not called.
  VkSemaphore timeline() const { return timeline_; }
  VkQueue handle() const { return queue_.queue; }
  uint32_t family() const { return queue_.family; }

 private:
  /// A fence that is reused when no thread waits for it any more.
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
  const VkAllocationCallbacks* callbacks_;
  ApplicationQueue queue_;
  mutable std::mutex mutex_;
  std::deque<Pending> pending_;
  std::vector<std::shared_ptr<Fence>> fences_;  // not pending; threads may still wait for some
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  Ticket last_ = 0;
};

}  // namespace mulciber
