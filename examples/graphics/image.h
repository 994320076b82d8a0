// An image with its memory and its view.
#pragma once

#include "device.h"

namespace graphics {

struct ImageDescription {
  VkExtent2D extent = {};
  VkFormat format = VK_FORMAT_UNDEFINED;
  VkImageUsageFlags usage = 0;
  VkSampleCountFlagBits samples = VK_SAMPLE_COUNT_1_BIT;
  uint32_t layers = 1;
  bool array = false;  // its view has layers, even if there is only one
};

class Image {
 public:
  Image(Device& device, const ImageDescription& description);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  VkImage handle() const { return image_; }
  VkImageView view() const { return view_; }
  const ImageDescription& description() const { return description_; }

 private:
  VkDevice device_;
  ImageDescription description_;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkImageView view_ = VK_NULL_HANDLE;
};

}  // namespace graphics
