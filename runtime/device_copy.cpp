#include "runtime/device_copy.h"

#include "runtime/device.h"
#include "runtime/memory_barrier.h"

namespace mulciber {

void copy(Device& device, std::span<const DeviceCopy> copies) {
  if (copies.empty()) return;
  struct Commands {
    Device& device;
    VkCommandBuffer buffer;
    ~Commands() { device.free_command_buffers({&buffer, 1}); }
  };
  const Commands commands = {device, device.allocate_command_buffer()};
  const DeviceFunctions& vk = device.vk();
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  device.check(vk.vkBeginCommandBuffer(commands.buffer, &begin), "vkBeginCommandBuffer");
  constexpr VkPipelineStageFlags kStages =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
  constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  const auto wait = [&] {
    memory_barrier(vk, commands.buffer, {kStages, kWrites}, {kStages, kReads | kWrites});
  };
  wait();
  for (const DeviceCopy& copy : copies) {
    const VkBufferCopy region{copy.from.offset, copy.to.offset, copy.from.size};
    vk.vkCmdCopyBuffer(commands.buffer, copy.from.buffer, copy.to.buffer, 1, &region);
    wait();
  }
  device.check(vk.vkEndCommandBuffer(commands.buffer), "vkEndCommandBuffer");
  device.wait(device.submit({&commands.buffer, 1}));
}

}  // namespace mulciber
