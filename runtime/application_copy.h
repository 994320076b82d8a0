// Copies of results into an application's images and buffers.
#pragma once

#include "mulciber/application_device.h"
#include "runtime/tensor.h"
#include "runtime/vulkan.h"

namespace mulciber {

/// Rows of numbers in device memory; only the first `columns` of each row are copied.
struct PaddedRows {
  BufferView view;
  uint32_t rows = 0, columns = 0;
  uint32_t stride = 0;  // numbers from one row to the next
};

/// A copy into an image in several parts, between which other commands may be recorded.
class ImageCopy {
 public:
  /// Records the barrier before the first part. Throws SettingError when so many rows and columns
  /// do not fit the image.
  ImageCopy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
            uint32_t rows, uint32_t columns, const ApplicationImage& to, const char* what);
  /// Copies rows, the first of them to row `first` of the image. The numbers are texels of the
  /// image's format, and their writes are already visible to transfers.
  void copy(const PaddedRows& from, uint32_t first = 0);
  /// Records the barrier after the last part: the image is ready for the use that the application
  /// named.
  void end();

 private:
  const DeviceFunctions& vk_;
  VkCommandBuffer commands_;
  uint32_t lent_family_;
  ApplicationImage to_;
};

/// Record a whole copy. Writes of kernels must be visible to transfers already, which a slice
/// ensures; the result is ready for the use that the application named. from: floats. to: an image
/// of VK_FORMAT_R32_SFLOAT (models/vision/image_copies.h serves other formats), or a buffer.
/// lent_family: the queue family of the command buffer. `what`: for messages. Throw SettingError
/// where the rows do not fit.
void record_copy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
                 const PaddedRows& from, const ApplicationImage& to, const char* what);
void record_copy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
                 const PaddedRows& from, const ApplicationBuffer& to, const char* what);

}  // namespace mulciber
