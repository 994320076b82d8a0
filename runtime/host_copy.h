// Copies of results into images and buffers of a host's.
#pragma once

#include "mulciber/host_device.h"
#include "runtime/tensor.h"
#include "runtime/vulkan.h"

namespace mulciber {

/// Rows of floats in device memory, of which only the first columns count.
struct PaddedRows {
  BufferView view;
  uint32_t rows = 0, columns = 0;
  uint32_t stride = 0;  // floats from one row to the next
};

/// Record a copy that makes what kernels wrote before, and a slice made visible to transfers, ready
/// for what the host says it is for. lent_family: the queue family of the command buffer. `what`:
/// for messages. Throw SettingError where it does not fit.
void record_copy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
                 const PaddedRows& from, const HostImage& to, const char* what);
void record_copy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
                 const PaddedRows& from, const HostBuffer& to, const char* what);

}  // namespace mulciber
