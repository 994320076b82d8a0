#include "drawing_application.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

void check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  std::fprintf(stderr, "%s failed: %d\n", call, result);
  std::exit(1);
}

DrawingApplication::DrawingApplication(const mulciber::OpenModel& model) {
  VkApplicationInfo application_info{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application_info.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo instance_info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  instance_info.pApplicationInfo = &application_info;
  check(vkCreateInstance(&instance_info, nullptr, &physical_.instance), "vkCreateInstance");
  physical_.get_instance_proc_addr = vkGetInstanceProcAddr;
  physical_.api_version = application_info.apiVersion;
  uint32_t count = 1;
  const VkResult found =
      vkEnumeratePhysicalDevices(physical_.instance, &count, &physical_.physical_device);
  check(found == VK_INCOMPLETE ? VK_SUCCESS : found, "vkEnumeratePhysicalDevices");
  asked_ = mulciber::requirements(physical_, model);
  for (const std::string& obstacle : asked_.obstacles)
    std::fprintf(stderr, "%s\n", obstacle.c_str());
  if (!asked_.fits()) std::exit(1);

  vkGetPhysicalDeviceQueueFamilyProperties(physical_.physical_device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_.physical_device, &count, families.data());
  constexpr VkQueueFlags kBoth = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
  while (family_ < count && (families[family_].queueFlags & kBoth) != kBoth) ++family_;
  if (family_ == count) {
    std::fprintf(stderr, "no queue family both draws and computes\n");
    std::exit(1);
  }
  const float priority = 1;
  VkDeviceQueueCreateInfo queue_info{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue_info.queueFamilyIndex = family_;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  std::vector<const char*> names;
  for (const std::string& name : asked_.extensions) names.push_back(name.c_str());
  VkDeviceCreateInfo device_info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  device_info.pNext = asked_.features;
  device_info.queueCreateInfoCount = 1;
  device_info.pQueueCreateInfos = &queue_info;
  device_info.enabledExtensionCount = static_cast<uint32_t>(names.size());
  device_info.ppEnabledExtensionNames = names.data();
  check(vkCreateDevice(physical_.physical_device, &device_info, nullptr, &device_),
        "vkCreateDevice");
  vkGetDeviceQueue(device_, family_, 0, &queue_);

  VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool_info.queueFamilyIndex = family_;
  check(vkCreateCommandPool(device_, &pool_info, nullptr, &pool_), "vkCreateCommandPool");
  VkCommandBufferAllocateInfo buffer_info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  buffer_info.commandPool = pool_;
  buffer_info.commandBufferCount = 1;
  check(vkAllocateCommandBuffers(device_, &buffer_info, &commands_), "vkAllocateCommandBuffers");
  VkFenceCreateInfo fence_info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  check(vkCreateFence(device_, &fence_info, nullptr, &fence_), "vkCreateFence");
}

DrawingApplication::~DrawingApplication() {
  for (; !at_end_.empty(); at_end_.pop_back()) at_end_.back()();
  vkDestroyFence(device_, fence_, nullptr);
  vkDestroyCommandPool(device_, pool_, nullptr);
  vkDestroyDevice(device_, nullptr);
  vkDestroyInstance(physical_.instance, nullptr);
}

mulciber::ApplicationDevice DrawingApplication::lent() const {
  mulciber::ApplicationDevice application;
  application.physical = physical_;
  application.device = device_;
  application.queue = {.queue = queue_, .family = family_};
  application.enabled_extensions = asked_.extensions;
  application.enabled_features = asked_.features;
  return application;
}

VkCommandBuffer DrawingApplication::begin() {
  VkCommandBufferBeginInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vkBeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer");
  return commands_;
}

void DrawingApplication::submit_and_wait() {
  check(vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands_;
  check(vkQueueSubmit(queue_, 1, &info, fence_), "vkQueueSubmit");
  check(vkWaitForFences(device_, 1, &fence_, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  check(vkResetFences(device_, 1, &fence_), "vkResetFences");
}

VkDeviceMemory DrawingApplication::allocate(const VkMemoryRequirements& needs,
                                            VkMemoryPropertyFlags properties) {
  VkPhysicalDeviceMemoryProperties types;
  vkGetPhysicalDeviceMemoryProperties(physical_.physical_device, &types);
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = needs.size;
  for (; info.memoryTypeIndex < types.memoryTypeCount; ++info.memoryTypeIndex) {
    const VkMemoryPropertyFlags has = types.memoryTypes[info.memoryTypeIndex].propertyFlags;
    if ((needs.memoryTypeBits >> info.memoryTypeIndex & 1) && (has & properties) == properties)
      break;
  }
  VkDeviceMemory memory = VK_NULL_HANDLE;
  check(vkAllocateMemory(device_, &info, nullptr, &memory), "vkAllocateMemory");
  at_end([=, this] { vkFreeMemory(device_, memory, nullptr); });
  return memory;
}

DrawnImage DrawingApplication::make_image(VkExtent2D extent, VkFormat format,
                                          VkImageUsageFlags usage) {
  DrawnImage made = {.format = format, .extent = extent};
  VkImageCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
  info.imageType = VK_IMAGE_TYPE_2D;
  info.format = format;
  info.extent = {extent.width, extent.height, 1};
  info.mipLevels = info.arrayLayers = 1;
  info.samples = VK_SAMPLE_COUNT_1_BIT;
  info.usage = usage;
  check(vkCreateImage(device_, &info, nullptr, &made.image), "vkCreateImage");
  VkMemoryRequirements needs;
  vkGetImageMemoryRequirements(device_, made.image, &needs);
  const VkDeviceMemory memory = allocate(needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
  check(vkBindImageMemory(device_, made.image, memory, 0), "vkBindImageMemory");
  VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
  view.image = made.image;
  view.viewType = VK_IMAGE_VIEW_TYPE_2D;
  view.format = format;
  const bool depth = usage & VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
  view.subresourceRange = {static_cast<VkImageAspectFlags>(depth ? VK_IMAGE_ASPECT_DEPTH_BIT
                                                                 : VK_IMAGE_ASPECT_COLOR_BIT),
                           0, 1, 0, 1};
  check(vkCreateImageView(device_, &view, nullptr, &made.view), "vkCreateImageView");
  at_end([=, this] {
    vkDestroyImageView(device_, made.view, nullptr);
    vkDestroyImage(device_, made.image, nullptr);
  });
  return made;
}

ReadBuffer DrawingApplication::make_read_buffer(VkDeviceSize bytes) {
  ReadBuffer made;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  check(vkCreateBuffer(device_, &info, nullptr, &made.buffer), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device_, made.buffer, &needs);
  const VkDeviceMemory memory =
      allocate(needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  check(vkBindBufferMemory(device_, made.buffer, memory, 0), "vkBindBufferMemory");
  check(vkMapMemory(device_, memory, 0, VK_WHOLE_SIZE, 0, &made.mapped), "vkMapMemory");
  at_end([=, this] { vkDestroyBuffer(device_, made.buffer, nullptr); });
  return made;
}

VkShaderModule DrawingApplication::make_shader(std::span<const uint32_t> code) {
  VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = code.size_bytes();
  info.pCode = code.data();
  VkShaderModule made = VK_NULL_HANDLE;
  check(vkCreateShaderModule(device_, &info, nullptr, &made), "vkCreateShaderModule");
  at_end([=, this] { vkDestroyShaderModule(device_, made, nullptr); });
  return made;
}

std::vector<uint8_t> DrawingApplication::read(const DrawnImage& image) {
  const VkDeviceSize bytes = VkDeviceSize{4} * image.extent.width * image.extent.height;
  const ReadBuffer to = make_read_buffer(bytes);
  const VkCommandBuffer commands = begin();
  VkBufferImageCopy region = {};
  region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
  region.imageExtent = {image.extent.width, image.extent.height, 1};
  vkCmdCopyImageToBuffer(commands, image.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, to.buffer, 1,
                         &region);
  VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                       &barrier, 0, nullptr, 0, nullptr);
  submit_and_wait();
  const auto* first = static_cast<const uint8_t*>(to.mapped);
  return {first, first + bytes};
}

void write_ppm(const std::string& path, VkExtent2D extent, std::span<const uint8_t> rgba) {
  std::ofstream file(path, std::ios::binary);
  file << "P6\n" << extent.width << ' ' << extent.height << "\n255\n";
  for (size_t i = 0; i < rgba.size(); ++i) {
    if (i % 4 != 3) file.put(static_cast<char>(rgba[i]));
  }
  if (!file.flush()) {
    std::fprintf(stderr, "%s cannot be written\n", path.c_str());
    std::exit(1);
  }
}
