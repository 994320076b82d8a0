#include "apps/viewer/frames.h"

namespace mulciber::viewer {
namespace {

using graphics::check;

constexpr uint32_t kStamps = 3;  // in a frame: its begin, the network's end, its end

}  // namespace

Frames::Frames(graphics::Device& device) : device_(device) {
  VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool_info.queueFamilyIndex = device.queue_family();
  check(vkCreateCommandPool(device.handle(), &pool_info, nullptr, &pool_), "vkCreateCommandPool");
  for (Slot& slot : slots_) {
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    info.commandPool = pool_;
    info.commandBufferCount = 1;
    check(vkAllocateCommandBuffers(device.handle(), &info, &slot.commands),
          "vkAllocateCommandBuffers");
    VkFenceCreateInfo fence_info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    check(vkCreateFence(device.handle(), &fence_info, nullptr, &slot.fence), "vkCreateFence");
  }
  if (device.timestamp_bits() == 0) return;
  VkQueryPoolCreateInfo query_info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  query_info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  query_info.queryCount = kStamps * kInFlight;
  check(vkCreateQueryPool(device.handle(), &query_info, nullptr, &queries_), "vkCreateQueryPool");
}

Frames::~Frames() {
  vkDestroyQueryPool(device_.handle(), queries_, nullptr);
  for (const Slot& slot : slots_) vkDestroyFence(device_.handle(), slot.fence, nullptr);
  vkDestroyCommandPool(device_.handle(), pool_, nullptr);
}

VkCommandBuffer Frames::begin() {
  const Clock::time_point now = Clock::now();
  slots_[slot_].frame_ms = std::chrono::duration<float, std::milli>(now - begun_).count();
  begun_ = now;
  slot_ = (slot_ + 1) % kInFlight;
  Slot& slot = slots_[slot_];
  ended_.reset();
  const auto first = static_cast<uint32_t>(slot_) * kStamps;
  if (slot.submitted) {
    check(vkWaitForFences(device_.handle(), 1, &slot.fence, VK_TRUE, UINT64_MAX),
          "vkWaitForFences");
    check(vkResetFences(device_.handle(), 1, &slot.fence), "vkResetFences");
    slot.submitted = false;
    ended_ = FrameTimes{.frame = slot.frame_ms};
    uint64_t stamps[kStamps] = {};
    if (queries_ &&
        vkGetQueryPoolResults(device_.handle(), queries_, first, kStamps, sizeof(stamps), stamps,
                              sizeof(uint64_t), VK_QUERY_RESULT_64_BIT) == VK_SUCCESS) {
      const uint32_t bits = device_.timestamp_bits();
      const uint64_t mask = bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
      const auto ms = [&](uint64_t from, uint64_t to) {
        return static_cast<float>((to - from) & mask) *
               device_.properties().limits.timestampPeriod * 1e-6f;
      };
      ended_->network = ms(stamps[0], stamps[1]);
      ended_->drawing = ms(stamps[1], stamps[2]);
    }
  }
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  // An exception may have left commands that were not submitted.
  if (slot.recording) check(vkResetCommandBuffer(slot.commands, 0), "vkResetCommandBuffer");
  check(vkBeginCommandBuffer(slot.commands, &info), "vkBeginCommandBuffer");
  slot.recording = true;
  if (queries_) {
    vkCmdResetQueryPool(slot.commands, queries_, first, kStamps);
    vkCmdWriteTimestamp(slot.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, first);
  }
  return slot.commands;
}

void Frames::network_ends() {
  if (queries_)
    vkCmdWriteTimestamp(slots_[slot_].commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_,
                        static_cast<uint32_t>(slot_) * kStamps + 1);
}

void Frames::submit(VkSemaphore wait, VkSemaphore signal) {
  Slot& slot = slots_[slot_];
  if (queries_)
    vkCmdWriteTimestamp(slot.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_,
                        static_cast<uint32_t>(slot_) * kStamps + 2);
  check(vkEndCommandBuffer(slot.commands), "vkEndCommandBuffer");
  // The copy is the first use of the window's image.
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.waitSemaphoreCount = wait ? 1 : 0;
  info.pWaitSemaphores = &wait;
  info.pWaitDstStageMask = &stage;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &slot.commands;
  info.signalSemaphoreCount = signal ? 1 : 0;
  info.pSignalSemaphores = &signal;
  check(vkQueueSubmit(device_.queue(), 1, &info, slot.fence), "vkQueueSubmit");
  slot.recording = false;
  slot.submitted = true;
}

void Frames::wait() {
  for (const Slot& slot : slots_) {
    if (slot.submitted)
      check(vkWaitForFences(device_.handle(), 1, &slot.fence, VK_TRUE, UINT64_MAX),
            "vkWaitForFences");
  }
}

}  // namespace mulciber::viewer
