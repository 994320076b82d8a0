// Copies into an application's resources: the commands recorded where another queue family owns the
// image or buffer. CPU drivers have one family, so the test reads the recorded commands.
#include "runtime/application_copy.h"

#include <tuple>
#include <vector>

#include "tests/catch.h"

using namespace mulciber;

namespace {

struct Recorded {
  std::vector<VkImageMemoryBarrier> images;
  std::vector<VkBufferMemoryBarrier> buffers;
  std::vector<VkPipelineStageFlags> from, to;
  size_t copies = 0;
};
Recorded g_recorded;

/// Functions of a device that records barriers and copies.
DeviceFunctions noting_device() {
  g_recorded = {};
  DeviceFunctions vk{};
  vk.vkCmdPipelineBarrier = [](VkCommandBuffer, VkPipelineStageFlags from, VkPipelineStageFlags to,
                               VkDependencyFlags, uint32_t, const VkMemoryBarrier*,
                               uint32_t buffer_count, const VkBufferMemoryBarrier* buffers,
                               uint32_t image_count, const VkImageMemoryBarrier* images) {
    g_recorded.from.push_back(from);
    g_recorded.to.push_back(to);
    g_recorded.buffers.insert(g_recorded.buffers.end(), buffers, buffers + buffer_count);
    g_recorded.images.insert(g_recorded.images.end(), images, images + image_count);
  };
  vk.vkCmdCopyBufferToImage = [](VkCommandBuffer, VkBuffer, VkImage, VkImageLayout, uint32_t,
                                 const VkBufferImageCopy*) { ++g_recorded.copies; };
  vk.vkCmdCopyBuffer = [](VkCommandBuffer, VkBuffer, VkBuffer, uint32_t, const VkBufferCopy*) {
    ++g_recorded.copies;
  };
  return vk;
}

constexpr uint32_t kLent = 2, kGraphics = 0;
const PaddedRows kRows = {.view = {}, .rows = 3, .columns = 5, .stride = 8};

ApplicationImage an_image() {
  ApplicationImage image;
  image.image = reinterpret_cast<VkImage>(uintptr_t{8});
  image.format = VK_FORMAT_R32_SFLOAT;
  image.extent = {5, 3};
  image.layout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL;
  return image;
}

}  // namespace

TEST_CASE("An image of another queue family is acquired, and released to it") {
  ApplicationImage image = an_image();
  image.queue_family = kGraphics;
  record_copy(noting_device(), VK_NULL_HANDLE, kLent, kRows, image, "a map");
  REQUIRE(g_recorded.images.size() == 2);
  CHECK(g_recorded.copies == 1);
  const auto& [acquired, released] = std::tie(g_recorded.images[0], g_recorded.images[1]);
  CHECK(acquired.srcQueueFamilyIndex == kGraphics);
  CHECK(acquired.dstQueueFamilyIndex == kLent);
  CHECK(acquired.oldLayout == VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
  CHECK(acquired.newLayout == VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
  CHECK(released.srcQueueFamilyIndex == kLent);
  CHECK(released.dstQueueFamilyIndex == kGraphics);
  CHECK(released.newLayout == VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
  // The lent family may have no fragment shaders.
  CHECK(g_recorded.from[0] == VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT);
  CHECK(g_recorded.to[1] == VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT);
  CHECK(released.srcAccessMask == VK_ACCESS_TRANSFER_WRITE_BIT);

  image.layout = VK_IMAGE_LAYOUT_UNDEFINED;
  record_copy(noting_device(), VK_NULL_HANDLE, kLent, kRows, image, "a map");
  REQUIRE(g_recorded.images.size() == 2);
  CHECK(g_recorded.images[0].srcQueueFamilyIndex == VK_QUEUE_FAMILY_IGNORED);
  CHECK(g_recorded.images[0].dstQueueFamilyIndex == VK_QUEUE_FAMILY_IGNORED);
  CHECK(g_recorded.images[1].dstQueueFamilyIndex == kGraphics);
}

TEST_CASE("An image of the lent family, or of all, changes hands with nobody") {
  for (const uint32_t family : {kLent, uint32_t{VK_QUEUE_FAMILY_IGNORED}}) {
    ApplicationImage image = an_image();
    image.queue_family = family;
    record_copy(noting_device(), VK_NULL_HANDLE, kLent, kRows, image, "a map");
    REQUIRE(g_recorded.images.size() == 2);
    for (const VkImageMemoryBarrier& barrier : g_recorded.images) {
      CHECK(barrier.srcQueueFamilyIndex == VK_QUEUE_FAMILY_IGNORED);
      CHECK(barrier.dstQueueFamilyIndex == VK_QUEUE_FAMILY_IGNORED);
    }
    CHECK(g_recorded.from[0] == VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT);
    CHECK(g_recorded.to[1] == VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT);
    CHECK(g_recorded.images[1].dstAccessMask == VK_ACCESS_SHADER_READ_BIT);
  }
}

TEST_CASE("A range of a buffer changes hands as an image does") {
  ApplicationBuffer buffer;
  buffer.buffer = reinterpret_cast<VkBuffer>(uintptr_t{8});
  buffer.offset = 16;
  buffer.size = 60;
  buffer.queue_family = kGraphics;
  record_copy(noting_device(), VK_NULL_HANDLE, kLent, kRows, buffer, "a map");
  REQUIRE(g_recorded.buffers.size() == 2);
  for (const VkBufferMemoryBarrier& barrier : g_recorded.buffers) {
    CHECK(barrier.offset == 16);
    CHECK(barrier.size == 60);
  }
  CHECK(g_recorded.buffers[0].srcQueueFamilyIndex == kGraphics);
  CHECK(g_recorded.buffers[0].dstQueueFamilyIndex == kLent);
  CHECK(g_recorded.buffers[1].srcQueueFamilyIndex == kLent);
  CHECK(g_recorded.buffers[1].dstQueueFamilyIndex == kGraphics);
}
