#include "runtime/host_copy.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "runtime/memory_barrier.h"

namespace mulciber {
namespace {

constexpr BarrierScope kCopyWrites = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT};

void change_layout(const DeviceFunctions& vk, VkCommandBuffer commands, const HostImage& of,
                   const BarrierScope& from, VkImageLayout old_layout, const BarrierScope& to,
                   VkImageLayout new_layout) {
  VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
  barrier.srcAccessMask = from.accesses;
  barrier.dstAccessMask = to.accesses;
  barrier.oldLayout = old_layout;
  barrier.newLayout = new_layout;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = of.image;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, of.mip_level, 1, of.array_layer, 1};
  vk.vkCmdPipelineBarrier(commands, from.stages, to.stages, 0, 0, nullptr, 0, nullptr, 1, &barrier);
}

}  // namespace

void record_copy(const DeviceFunctions& vk, VkCommandBuffer commands, const PaddedRows& from,
                 const HostImage& to, const char* what) {
  if (to.image == VK_NULL_HANDLE || to.format != VK_FORMAT_R32_SFLOAT)
    throw SettingError(what, "goes into an image that is none, or not of VK_FORMAT_R32_SFLOAT",
                       "give HostImage::image and format");
  const int64_t right = int64_t{to.offset.x} + from.columns,
                below = int64_t{to.offset.y} + from.rows;
  if (to.offset.x < 0 || to.offset.y < 0 || right > to.extent.width || below > to.extent.height)
    throw SettingError(
        what,
        fmt::format("takes {} x {} texels from ({}, {}) on, the image has {} x {}", from.columns,
                    from.rows, to.offset.x, to.offset.y, to.extent.width, to.extent.height),
        "make it larger");
  const BarrierScope host = {to.stages, to.accesses};
  change_layout(vk, commands, to, host, to.layout, kCopyWrites,
                VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
  VkBufferImageCopy region = {};
  region.bufferOffset = from.view.offset;
  region.bufferRowLength = from.stride;
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, to.mip_level, to.array_layer, 1};
  region.imageOffset = {to.offset.x, to.offset.y, 0};
  region.imageExtent = {from.columns, from.rows, 1};
  vk.vkCmdCopyBufferToImage(commands, from.view.buffer, to.image,
                            VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region);
  change_layout(vk, commands, to, kCopyWrites, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, host,
                to.final_layout);
}

void record_copy(const DeviceFunctions& vk, VkCommandBuffer commands, const PaddedRows& from,
                 const HostBuffer& to, const char* what) {
  const VkDeviceSize row_bytes = from.columns * sizeof(float), bytes = from.rows * row_bytes;
  if (to.buffer == VK_NULL_HANDLE || to.size < bytes)
    throw SettingError(what,
                       fmt::format("takes {} bytes, the buffer's range has {}", bytes, to.size),
                       "give HostBuffer::buffer and a size that suffices");
  const BarrierScope host = {to.stages, to.accesses};
  memory_barrier(vk, commands, host, kCopyWrites);
  std::array<VkBufferCopy, 64> regions;  // a row each
  for (uint32_t first = 0; first < from.rows; first += regions.size()) {
    const uint32_t count = std::min<uint32_t>(regions.size(), from.rows - first);
    for (uint32_t i = 0; i < count; ++i) {
      const VkDeviceSize row = first + i;
      regions[i] = {from.view.offset + row * from.stride * sizeof(float),
                    to.offset + row * row_bytes, row_bytes};
    }
    vk.vkCmdCopyBuffer(commands, from.view.buffer, to.buffer, count, regions.data());
  }
  memory_barrier(vk, commands, kCopyWrites, host);
}

}  // namespace mulciber
