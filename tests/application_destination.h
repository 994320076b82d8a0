// An application's destination of results: command buffers that are waited for, and memory that the
// test reads.
#pragma once

#include <cstdint>

#include "mulciber/embedding.h"
#include "runtime/device.h"
#include "tests/catch.h"

namespace mulciber::tests {

/// Records into a command buffer of the device, submits it and waits.
template <typename Record>
void run_commands(Device& device, const Record& record) {
  const VkCommandBuffer commands = device.allocate_command_buffer();
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  REQUIRE(device.vk().vkBeginCommandBuffer(commands, &begin) == VK_SUCCESS);
  record(commands);
  REQUIRE(device.vk().vkEndCommandBuffer(commands) == VK_SUCCESS);
  device.wait(device.submit({&commands, 1}));
  device.free_command_buffers({&commands, 1});
}

inline void finish(FrameTask& task) {
  while (!task.done()) {
    task.step(2000);
    task.wait();
  }
}

/// Memory as an application would provide it.
struct Destination {
  Buffer memory;
  ApplicationBuffer buffer;
  Destination(Device& device, uint64_t floats)
      : memory(device.memory().allocate(floats * sizeof(float), MemoryUsage::kReadback)),
        buffer{memory.view().buffer, memory.view().offset, floats * sizeof(float),
               VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT} {}
  const float* floats() const { return reinterpret_cast<const float*>(memory.view().mapped); }
};

}  // namespace mulciber::tests
