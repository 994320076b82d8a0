#include "image.h"

namespace graphics {

Image::Image(Device& device, const ImageDescription& description)
    : device_(device.handle()), description_(description) {
  VkImageCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
  info.imageType = VK_IMAGE_TYPE_2D;
  info.format = description.format;
  info.extent = {description.extent.width, description.extent.height, 1};
  info.mipLevels = 1;
  info.arrayLayers = description.layers;
  info.samples = description.samples;
  info.usage = description.usage;
  check(vkCreateImage(device_, &info, nullptr, &image_), "vkCreateImage");
  VkMemoryRequirements needs;
  vkGetImageMemoryRequirements(device_, image_, &needs);
  memory_ = device.allocate(needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  check(vkBindImageMemory(device_, image_, memory_, 0), "vkBindImageMemory");
  VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
  view.image = image_;
  view.viewType = description.array ? VK_IMAGE_VIEW_TYPE_2D_ARRAY : VK_IMAGE_VIEW_TYPE_2D;
  view.format = description.format;
  const bool depth = description.usage & VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
  view.subresourceRange = {static_cast<VkImageAspectFlags>(depth ? VK_IMAGE_ASPECT_DEPTH_BIT
                                                                 : VK_IMAGE_ASPECT_COLOR_BIT),
                           0, 1, 0, description.layers};
  check(vkCreateImageView(device_, &view, nullptr, &view_), "vkCreateImageView");
}

Image::~Image() {
  vkDestroyImageView(device_, view_, nullptr);
  vkDestroyImage(device_, image_, nullptr);
  vkFreeMemory(device_, memory_, nullptr);
}

}  // namespace graphics
