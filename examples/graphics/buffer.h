// A buffer in host-visible memory that stays mapped.
#pragma once

#include "device.h"

namespace graphics {

class Buffer {
 public:
  Buffer(Device& device, VkDeviceSize bytes, VkBufferUsageFlags usage);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  VkBuffer handle() const { return buffer_; }
  VkDeviceSize size() const { return size_; }
  template <class T>
  T* mapped() const {
    return static_cast<T*>(mapped_);
  }

 private:
  VkDevice device_;
  VkDeviceSize size_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  void* mapped_ = nullptr;
};

}  // namespace graphics
