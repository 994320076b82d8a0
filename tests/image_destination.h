// An application's image whose texels a test reads.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/application_destination.h"
#include "tests/catch.h"
#include "tests/vulkan_application.h"

namespace mulciber::tests {

/// An image of the application, and reading back its texels.
class ImageDestination {
 public:
  ImageDestination(const VulkanApplication& application, VkFormat format, uint32_t texel_bytes,
                   VkExtent2D extent)
      : application_(application), extent_(extent), texel_bytes_(texel_bytes) {
    VkImageCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    info.imageType = VK_IMAGE_TYPE_2D;
    info.format = format;
    info.extent = {extent.width, extent.height, 1};
    info.mipLevels = info.arrayLayers = 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
    REQUIRE(call<PFN_vkCreateImage>("vkCreateImage")(application.device, &info, nullptr, &image_) ==
            VK_SUCCESS);
    VkMemoryRequirements needs;
    call<PFN_vkGetImageMemoryRequirements>("vkGetImageMemoryRequirements")(application.device,
                                                                           image_, &needs);
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    while (!(needs.memoryTypeBits >> allocate.memoryTypeIndex & 1)) ++allocate.memoryTypeIndex;
    REQUIRE(application.vk.vkAllocateMemory(application.device, &allocate, nullptr, &memory_) ==
            VK_SUCCESS);
    REQUIRE(call<PFN_vkBindImageMemory>("vkBindImageMemory")(application.device, image_, memory_,
                                                             0) == VK_SUCCESS);
    to.image = image_;
    to.format = format;
    to.extent = extent;
    to.final_layout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
    to.stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
    to.accesses = VK_ACCESS_TRANSFER_READ_BIT;
  }
  ~ImageDestination() {
    call<PFN_vkDestroyImage>("vkDestroyImage")(application_.device, image_, nullptr);
    application_.vk.vkFreeMemory(application_.device, memory_, nullptr);
  }
  ImageDestination(const ImageDestination&) = delete;

  /// Every texel's bytes, row after row. The image must be in to.final_layout.
  std::vector<uint8_t> read(Device& device) const {
    const uint64_t bytes = uint64_t{extent_.width} * extent_.height * texel_bytes_;
    const Buffer back = device.memory().allocate(bytes, MemoryUsage::kReadback);
    run_commands(device, [&](VkCommandBuffer commands) {
      VkBufferImageCopy region = {};
      region.bufferOffset = back.view().offset;
      region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
      region.imageExtent = {extent_.width, extent_.height, 1};
      call<PFN_vkCmdCopyImageToBuffer>("vkCmdCopyImageToBuffer")(
          commands, image_, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, back.view().buffer, 1, &region);
      VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
      barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
      barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
      application_.vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                           VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr,
                                           0, nullptr);
    });
    const auto* from = reinterpret_cast<const uint8_t*>(back.view().mapped);
    return {from, from + bytes};
  }

  ApplicationImage to;

 private:
  template <typename Function>
  Function call(const char* name) const {
    return reinterpret_cast<Function>(
        application_.instance_vk.vkGetDeviceProcAddr(application_.device, name));
  }
  const VulkanApplication& application_;
  VkExtent2D extent_;
  uint32_t texel_bytes_;
  VkImage image_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

}  // namespace mulciber::tests
