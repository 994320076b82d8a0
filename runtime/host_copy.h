// Copies of results into images and buffers of a host's.
#pragma once

#include "mulciber/host_device.h"
#include "runtime/tensor.h"
#include "runtime/vulkan.h"

namespace mulciber {

/// Rows of numbers in device memory, of which only the first columns count.
struct PaddedRows {
  BufferView view;
  uint32_t rows = 0, columns = 0;
  uint32_t stride = 0;  // numbers from one row to the next
};

/// A copy into an image, in parts, between which other commands may stand.
class ImageCopy {
 public:
  /// Records what comes before the first part. Throws SettingError where that many rows and columns
  /// do not fit.
  ImageCopy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
            uint32_t rows, uint32_t columns, const HostImage& to, const char* what);
  /// Numbers that are texels of the image's format, for the rows from `first` on. What wrote them
  /// was made visible to transfers.
  void copy(const PaddedRows& from, uint32_t first = 0);
  /// Records what makes the image what the host says it is for.
  void end();

 private:
  const DeviceFunctions& vk_;
  VkCommandBuffer commands_;
  uint32_t lent_family_;
  HostImage to_;
};

/// Record a copy that makes what kernels wrote before, and a slice made visible to transfers, ready
/// for what the host says it is for. from: floats. to: an image of VK_FORMAT_R32_SFLOAT, others by
/// models/vision/image_copies.h. lent_family: the queue family of the command buffer. `what`: for
/// messages. Throw SettingError where it does not fit.
void record_copy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
                 const PaddedRows& from, const HostImage& to, const char* what);
void record_copy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
                 const PaddedRows& from, const HostBuffer& to, const char* what);

}  // namespace mulciber
