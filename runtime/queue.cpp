#include "runtime/queue.h"

#include <algorithm>
#include <utility>

namespace mulciber {

Queue::Fence::~Fence() {
  if (handle) owner.vk_.vkDestroyFence(owner.device_, handle, owner.callbacks_);
}

Queue::Queue(const DeviceFunctions& vk, VkDevice device, const VkAllocationCallbacks* callbacks,
             ApplicationQueue queue)
    : vk_(vk), device_(device), callbacks_(callbacks), queue_(std::move(queue)) {}

Queue::~Queue() {
  if (!timeline_) return;
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline_;
  info.pValues = &last_;
  // Returns at once, except where the driver has yet to set the semaphore; on a lost device it is
  // never set.
  constexpr uint64_t kSecond = 1'000'000'000;
  if (last_ > 0) vk_.vkWaitSemaphores(device_, &info, kSecond);
  vk_.vkDestroySemaphore(device_, timeline_, callbacks_);
}

VkResult Queue::make_timeline() {
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  info.pNext = &type;
  return vk_.vkCreateSemaphore(device_, &info, callbacks_, &timeline_);
}

VkResult Queue::free_fence(std::shared_ptr<Fence>* fence) {
  const auto free = std::find_if(fences_.begin(), fences_.end(),
                                 [](const auto& kept) { return kept.use_count() == 1; });
  if (free != fences_.end()) {
    *fence = std::move(*free);
    fences_.erase(free);
    return vk_.vkResetFences(device_, 1, &(*fence)->handle);
  }
  *fence = std::make_shared<Fence>(*this);
  VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  return vk_.vkCreateFence(device_, &info, callbacks_, &(*fence)->handle);
}

VkResult Queue::submit(std::span<const VkCommandBuffer> commands,
                       const SubmissionSemaphores& semaphores, Ticket* ticket) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Fence> fence;
  if (const VkResult result = free_fence(&fence); result != VK_SUCCESS) return result;
  SubmissionSemaphores all = semaphores;
  if (timeline_) {
    all.wait_values.resize(all.waits.size());
    all.signal_values.resize(all.signals.size());
    all.signals.push_back(timeline_);
    all.signal_values.push_back(last_ + 1);
  }
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.waitSemaphoreValueCount = static_cast<uint32_t>(all.wait_values.size());
  values.pWaitSemaphoreValues = all.wait_values.data();
  values.signalSemaphoreValueCount = static_cast<uint32_t>(all.signal_values.size());
  values.pSignalSemaphoreValues = all.signal_values.data();
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  if (!all.wait_values.empty() || !all.signal_values.empty()) info.pNext = &values;
  info.waitSemaphoreCount = static_cast<uint32_t>(all.waits.size());
  info.pWaitSemaphores = all.waits.data();
  info.pWaitDstStageMask = all.wait_stages.data();
  info.commandBufferCount = static_cast<uint32_t>(commands.size());
  info.pCommandBuffers = commands.data();
  info.signalSemaphoreCount = static_cast<uint32_t>(all.signals.size());
  info.pSignalSemaphores = all.signals.data();
  if (queue_.lock) queue_.lock();
  VkResult result = VK_SUCCESS;
  try {
    result = queue_.submit ? queue_.submit(queue_.queue, info, fence->handle)
                           : vk_.vkQueueSubmit(queue_.queue, 1, &info, fence->handle);
  } catch (...) {  // by the application's function
    if (queue_.unlock) queue_.unlock();
    throw;
  }
  if (result == VK_SUCCESS) {
    pending_.push_back({++last_, std::move(fence)});
    *ticket = last_;
  } else {
    fences_.push_back(std::move(fence));
  }
  if (queue_.unlock) queue_.unlock();
  return result;
}

std::optional<VkResult> Queue::wait_next(Ticket ticket, uint64_t timeout_ns) {
  Pending oldest;
  {
    std::lock_guard lock(mutex_);
    if (pending_.empty() || pending_.front().ticket > ticket) return std::nullopt;
    oldest = pending_.front();
  }
  const VkResult result =
      vk_.vkWaitForFences(device_, 1, &oldest.fence->handle, VK_TRUE, timeout_ns);
  if (result != VK_SUCCESS) return result;
  std::lock_guard lock(mutex_);
  // Another thread may have waited for this submission or a later one.
  while (!pending_.empty() && pending_.front().ticket <= oldest.ticket) {
    fences_.push_back(std::move(pending_.front().fence));
    pending_.pop_front();
  }
  return VK_SUCCESS;
}

VkResult Queue::status(Ticket ticket) {
  std::shared_ptr<Fence> fence;
  {
    std::lock_guard lock(mutex_);
    // A signalled fence covers all that was submitted before it.
    for (const Pending& pending : pending_) {
      if (pending.ticket <= ticket) fence = pending.fence;
    }
  }
  return fence ? vk_.vkGetFenceStatus(device_, fence->handle) : VK_SUCCESS;
}

Ticket Queue::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace mulciber
