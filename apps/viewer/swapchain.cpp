#include "apps/viewer/swapchain.h"

#include <algorithm>

namespace mulciber::viewer {
namespace {

using graphics::check;

void change_layout(VkCommandBuffer commands, VkImage image, VkImageLayout from, VkImageLayout to,
                   VkAccessFlags before, VkAccessFlags after) {
  VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
  barrier.srcAccessMask = before;
  barrier.dstAccessMask = after;
  barrier.oldLayout = from;
  barrier.newLayout = to;
  barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
  barrier.image = image;
  barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
                       0, nullptr, 0, nullptr, 1, &barrier);
}

VkSemaphore make_semaphore(VkDevice device) {
  const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  VkSemaphore made = VK_NULL_HANDLE;
  check(vkCreateSemaphore(device, &info, nullptr, &made), "vkCreateSemaphore");
  return made;
}

/// Shaders write the colors that the screen shows, so that formats which convert are skipped.
VkSurfaceFormatKHR choose_format(const graphics::Device& device) {
  uint32_t count = 0;
  check(vkGetPhysicalDeviceSurfaceFormatsKHR(device.physical_device(), device.surface(), &count,
                                             nullptr),
        "vkGetPhysicalDeviceSurfaceFormatsKHR");
  std::vector<VkSurfaceFormatKHR> formats(count);
  check(vkGetPhysicalDeviceSurfaceFormatsKHR(device.physical_device(), device.surface(), &count,
                                             formats.data()),
        "vkGetPhysicalDeviceSurfaceFormatsKHR");
  for (const VkSurfaceFormatKHR& format : formats) {
    if (format.format == VK_FORMAT_B8G8R8A8_UNORM || format.format == VK_FORMAT_R8G8B8A8_UNORM)
      return format;
  }
  return formats.at(0);
}

}  // namespace

Swapchain::~Swapchain() { destroy(); }

void Swapchain::destroy() {
  for (std::vector<VkSemaphore>* semaphores : {&acquired_, &drawn_}) {
    for (const VkSemaphore semaphore : *semaphores)
      vkDestroySemaphore(device_.handle(), semaphore, nullptr);
    semaphores->clear();
  }
  vkDestroySwapchainKHR(device_.handle(), swapchain_, nullptr);
  swapchain_ = VK_NULL_HANDLE;
}

bool Swapchain::make(VkExtent2D extent) {
  VkSurfaceCapabilitiesKHR limits;
  check(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(device_.physical_device(), device_.surface(),
                                                  &limits),
        "vkGetPhysicalDeviceSurfaceCapabilitiesKHR");
  destroy();
  extent_ = limits.currentExtent;
  if (extent_.width == UINT32_MAX)  // the window system lets the program choose
    extent_ = {
        std::clamp(extent.width, limits.minImageExtent.width, limits.maxImageExtent.width),
        std::clamp(extent.height, limits.minImageExtent.height, limits.maxImageExtent.height)};
  if (extent_.width == 0 || extent_.height == 0) return false;
  if (!(limits.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_DST_BIT))
    throw DeviceError(DeviceError::Kind::kUnavailable, device_.properties().deviceName,
                      "the window's images cannot be copied to");
  const VkSurfaceFormatKHR format = choose_format(device_);
  VkSwapchainCreateInfoKHR info{VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR};
  info.surface = device_.surface();
  info.minImageCount = limits.minImageCount + 1;
  if (limits.maxImageCount > 0)
    info.minImageCount = std::min(info.minImageCount, limits.maxImageCount);
  info.imageFormat = format.format;
  info.imageColorSpace = format.colorSpace;
  info.imageExtent = extent_;
  info.imageArrayLayers = 1;
  info.imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  info.preTransform = limits.currentTransform;
  info.compositeAlpha = limits.supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
                            : VK_COMPOSITE_ALPHA_INHERIT_BIT_KHR;
  info.presentMode = VK_PRESENT_MODE_FIFO_KHR;
  info.clipped = VK_TRUE;
  check(vkCreateSwapchainKHR(device_.handle(), &info, nullptr, &swapchain_),
        "vkCreateSwapchainKHR");
  uint32_t count = 0;
  check(vkGetSwapchainImagesKHR(device_.handle(), swapchain_, &count, nullptr),
        "vkGetSwapchainImagesKHR");
  images_.resize(count);
  check(vkGetSwapchainImagesKHR(device_.handle(), swapchain_, &count, images_.data()),
        "vkGetSwapchainImagesKHR");
  for (size_t i = 0; i < Frames::kInFlight; ++i)
    acquired_.push_back(make_semaphore(device_.handle()));
  for (size_t i = 0; i < images_.size(); ++i) drawn_.push_back(make_semaphore(device_.handle()));
  return true;
}

std::optional<uint32_t> Swapchain::acquire(size_t slot) {
  uint32_t index = 0;
  const VkResult result = vkAcquireNextImageKHR(device_.handle(), swapchain_, UINT64_MAX,
                                                acquired_[slot], VK_NULL_HANDLE, &index);
  if (result == VK_ERROR_OUT_OF_DATE_KHR) return std::nullopt;
  if (result != VK_SUBOPTIMAL_KHR) check(result, "vkAcquireNextImageKHR");
  return index;
}

void Swapchain::copy(VkCommandBuffer commands, VkImage image, VkExtent2D extent, uint32_t index) {
  change_layout(commands, images_[index], VK_IMAGE_LAYOUT_UNDEFINED,
                VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 0, VK_ACCESS_TRANSFER_WRITE_BIT);
  VkImageBlit region = {};  // formats may differ in the order of their channels
  region.srcSubresource = region.dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.srcOffsets[1] = {static_cast<int32_t>(extent.width), static_cast<int32_t>(extent.height),
                          1};
  region.dstOffsets[1] = {static_cast<int32_t>(extent_.width), static_cast<int32_t>(extent_.height),
                          1};
  vkCmdBlitImage(commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, images_[index],
                 VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region, VK_FILTER_NEAREST);
  change_layout(commands, images_[index], VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                VK_IMAGE_LAYOUT_PRESENT_SRC_KHR, VK_ACCESS_TRANSFER_WRITE_BIT, 0);
}

bool Swapchain::present(uint32_t index) {
  VkPresentInfoKHR info{VK_STRUCTURE_TYPE_PRESENT_INFO_KHR};
  info.waitSemaphoreCount = 1;
  info.pWaitSemaphores = &drawn_[index];
  info.swapchainCount = 1;
  info.pSwapchains = &swapchain_;
  info.pImageIndices = &index;
  const VkResult result = vkQueuePresentKHR(device_.queue(), &info);
  if (result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_SUBOPTIMAL_KHR) return false;
  check(result, "vkQueuePresentKHR");
  return true;
}

}  // namespace mulciber::viewer
