#include "runtime/application_copy.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "runtime/memory_barrier.h"

namespace mulciber {
namespace {

/// The user of a resource on one side of a barrier: its stages and accesses, and its queue family,
/// or VK_QUEUE_FAMILY_IGNORED where ownership is not transferred.
struct Owner {
  BarrierScope scope;
  uint32_t family = VK_QUEUE_FAMILY_IGNORED;
};

/// The application as owner. If its queue family differs from the command buffer's, the application
/// records its own half of the ownership transfer, with its own stages and accesses; `none` is the
/// stage that stands for them here.
template <typename Resource>
Owner owner_of(const Resource& resource, uint32_t lent_family, VkPipelineStageFlags none) {
  if (resource.queue_family == VK_QUEUE_FAMILY_IGNORED || resource.queue_family == lent_family)
    return {{resource.stages, resource.accesses}};
  return {{none, 0}, resource.queue_family};
}

template <typename Barrier>
void set_owners(Barrier& barrier, const Owner& from, const Owner& to, uint32_t lent_family) {
  const bool handed = from.family != to.family;
  const auto family = [&](const Owner& owner) {
    if (!handed) return VK_QUEUE_FAMILY_IGNORED;
    return owner.family == VK_QUEUE_FAMILY_IGNORED ? lent_family : owner.family;
  };
  barrier.srcAccessMask = from.scope.accesses;
  barrier.dstAccessMask = to.scope.accesses;
  barrier.srcQueueFamilyIndex = family(from);
  barrier.dstQueueFamilyIndex = family(to);
}

void change_layout(const DeviceFunctions& vk, VkCommandBuffer commands, const ApplicationImage& of,
                   const Owner& from, VkImageLayout old_layout, const Owner& to,
                   VkImageLayout new_layout, uint32_t lent_family) {
  VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
  set_owners(barrier, from, to, lent_family);
  barrier.oldLayout = old_layout;
  barrier.newLayout = new_layout;
  barrier.image = of.image;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, of.mip_level, 1, of.array_layer, 1};
  vk.vkCmdPipelineBarrier(commands, from.scope.stages, to.scope.stages, 0, 0, nullptr, 0, nullptr,
                          1, &barrier);
}

void part_buffer(const DeviceFunctions& vk, VkCommandBuffer commands, const ApplicationBuffer& of,
                 const Owner& from, const Owner& to, uint32_t lent_family) {
  VkBufferMemoryBarrier barrier{VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER};
  set_owners(barrier, from, to, lent_family);
  barrier.buffer = of.buffer;
  barrier.offset = of.offset;
  barrier.size = of.size;
  vk.vkCmdPipelineBarrier(commands, from.scope.stages, to.scope.stages, 0, 0, nullptr, 1, &barrier,
                          0, nullptr);
}

constexpr Owner kCopy = {{VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT}};

}  // namespace

ImageCopy::ImageCopy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
                     uint32_t rows, uint32_t columns, const ApplicationImage& to, const char* what)
    : vk_(vk), commands_(commands), lent_family_(lent_family), to_(to) {
  if (to.image == VK_NULL_HANDLE)
    throw SettingError(what, "goes into an image that is none", "give ApplicationImage::image");
  const int64_t right = int64_t{to.offset.x} + columns, below = int64_t{to.offset.y} + rows;
  if (to.offset.x < 0 || to.offset.y < 0 || right > to.extent.width || below > to.extent.height)
    throw SettingError(
        what,
        fmt::format("takes {} x {} texels from ({}, {}) on, the image has {} x {}", columns, rows,
                    to.offset.x, to.offset.y, to.extent.width, to.extent.height),
        "make it larger");
  Owner before = owner_of(to, lent_family, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT);
  // An image without a layout loses its contents, so no ownership is transferred.
  if (to.layout == VK_IMAGE_LAYOUT_UNDEFINED) before.family = VK_QUEUE_FAMILY_IGNORED;
  change_layout(vk, commands, to, before, to.layout, kCopy, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                lent_family);
}

void ImageCopy::copy(const PaddedRows& from, uint32_t first) {
  VkBufferImageCopy region = {};
  region.bufferOffset = from.view.offset;
  region.bufferRowLength = from.stride;
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, to_.mip_level, to_.array_layer, 1};
  region.imageOffset = {to_.offset.x, to_.offset.y + static_cast<int32_t>(first), 0};
  region.imageExtent = {from.columns, from.rows, 1};
  vk_.vkCmdCopyBufferToImage(commands_, from.view.buffer, to_.image,
                             VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region);
}

void ImageCopy::end() {
  change_layout(vk_, commands_, to_, kCopy, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                owner_of(to_, lent_family_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT), to_.final_layout,
                lent_family_);
}

void record_copy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
                 const PaddedRows& from, const ApplicationImage& to, const char* what) {
  if (to.format != VK_FORMAT_R32_SFLOAT)
    throw SettingError(what, "goes into an image that is not of VK_FORMAT_R32_SFLOAT",
                       "give ApplicationImage::format");
  ImageCopy copy(vk, commands, lent_family, from.rows, from.columns, to, what);
  copy.copy(from);
  copy.end();
}

void record_copy(const DeviceFunctions& vk, VkCommandBuffer commands, uint32_t lent_family,
                 const PaddedRows& from, const ApplicationBuffer& to, const char* what) {
  const VkDeviceSize row_bytes = from.columns * sizeof(float), bytes = from.rows * row_bytes;
  if (to.buffer == VK_NULL_HANDLE || to.size < bytes)
    throw SettingError(what,
                       fmt::format("takes {} bytes, the buffer's range has {}", bytes, to.size),
                       "give ApplicationBuffer::buffer and a size that suffices");
  part_buffer(vk, commands, to, owner_of(to, lent_family, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT), kCopy,
              lent_family);
  std::array<VkBufferCopy, 64> regions;  // one region per row
  for (uint32_t first = 0; first < from.rows; first += regions.size()) {
    const uint32_t count = std::min<uint32_t>(regions.size(), from.rows - first);
    for (uint32_t i = 0; i < count; ++i) {
      const VkDeviceSize row = first + i;
      regions[i] = {from.view.offset + row * from.stride * sizeof(float),
                    to.offset + row * row_bytes, row_bytes};
    }
    vk.vkCmdCopyBuffer(commands, from.view.buffer, to.buffer, count, regions.data());
  }
  part_buffer(vk, commands, to, kCopy,
              owner_of(to, lent_family, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT), lent_family);
}

}  // namespace mulciber
