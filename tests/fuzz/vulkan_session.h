// An application's Vulkan device for fuzz targets: made once, never destroyed, with a command
// buffer, a buffer and an image. What fails here ends the process with words.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "mulciber/mulciber_c.h"
#include "runtime/vulkan.h"

namespace mulciber::fuzz {

class VulkanSession {
 public:
  static constexpr VkDeviceSize kBytes = 1 << 20;  // of the buffer
  static constexpr VkExtent2D kTexels = {64, 64};  // of the image

  VulkanSession() {
    const PFN_vkGetInstanceProcAddr entry = vulkan_loader();
    if (!entry) stop("vulkan_loader");
    make_instance(entry);
    physical.get_instance_proc_addr = entry;
    if (mulciber_create_context(&context_) != MULCIBER_OK) stop("mulciber_create_context");
    if (mulciber_query_requirements(context_, &physical, nullptr, nullptr, &asked) != MULCIBER_OK)
      stop(mulciber_message(context_));
    make_device();
    make_buffer();
    make_image();
  }
  VulkanSession(const VulkanSession&) = delete;

  /// record: says whether what it recorded may run.
  template <typename Record>
  void run(const Record& record) {
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    check(vk_.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
    const bool complete = record(commands_);
    check(vk_.vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
    if (!complete) return;
    VkSubmitInfo submission{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    submission.commandBufferCount = 1;
    submission.pCommandBuffers = &commands_;
    check(vk_.vkQueueSubmit(queue, 1, &submission, VK_NULL_HANDLE), "vkQueueSubmit");
    check(vk_.vkDeviceWaitIdle(device), "vkDeviceWaitIdle");
  }

  MulciberPhysicalDevice physical = {sizeof(physical)};
  MulciberRequirements asked = {sizeof(asked)};  // what it points to is the context's
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkImage image = VK_NULL_HANDLE;

 private:
  [[noreturn]] static void stop(const char* what) {
    std::fprintf(stderr, "no Vulkan device for the fuzz target: %s\n", what);
    std::abort();
  }
  static void check(VkResult result, const char* call) {
    if (result != VK_SUCCESS) stop(call);
  }
  template <typename Function>
  Function call(const char* name) const {
    return reinterpret_cast<Function>(instance_vk_.vkGetDeviceProcAddr(device, name));
  }

  void make_instance(PFN_vkGetInstanceProcAddr entry) {
    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = physical.api_version = VK_API_VERSION_1_2;
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application;
    const auto create = reinterpret_cast<PFN_vkCreateInstance>(entry(nullptr, "vkCreateInstance"));
    check(create(&info, nullptr, &physical.instance), "vkCreateInstance");
    instance_vk_ = instance_functions(entry, physical.instance);
    uint32_t count = 1;
    instance_vk_.vkEnumeratePhysicalDevices(physical.instance, &count, &physical.physical_device);
    if (count != 1) stop("vkEnumeratePhysicalDevices");
  }

  void make_device() {
    const float priority = 1;
    VkDeviceQueueCreateInfo queues{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queues.queueFamilyIndex = asked.queue_family;
    queues.queueCount = 1;
    queues.pQueuePriorities = &priority;
    VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    info.pNext = asked.features;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queues;
    info.enabledExtensionCount = asked.extension_count;
    info.ppEnabledExtensionNames = asked.extensions;
    check(instance_vk_.vkCreateDevice(physical.physical_device, &info, nullptr, &device),
          "vkCreateDevice");
    vk_ = device_functions(instance_vk_, device);
    vk_.vkGetDeviceQueue(device, asked.queue_family, 0, &queue);
    VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool_info.queueFamilyIndex = asked.queue_family;
    pool_info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    VkCommandPool pool = VK_NULL_HANDLE;
    check(vk_.vkCreateCommandPool(device, &pool_info, nullptr, &pool), "vkCreateCommandPool");
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool;
    allocate.commandBufferCount = 1;
    check(vk_.vkAllocateCommandBuffers(device, &allocate, &commands_), "vkAllocateCommandBuffers");
  }

  VkDeviceMemory memory_for(const VkMemoryRequirements& needs) const {
    VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    info.allocationSize = needs.size;
    while (!(needs.memoryTypeBits >> info.memoryTypeIndex & 1)) ++info.memoryTypeIndex;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    check(vk_.vkAllocateMemory(device, &info, nullptr, &memory), "vkAllocateMemory");
    return memory;
  }

  void make_buffer() {
    VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    info.size = kBytes;
    info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    check(vk_.vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer");
    VkMemoryRequirements needs;
    vk_.vkGetBufferMemoryRequirements(device, buffer, &needs);
    check(vk_.vkBindBufferMemory(device, buffer, memory_for(needs), 0), "vkBindBufferMemory");
    run([&](VkCommandBuffer commands) {
      vk_.vkCmdFillBuffer(commands, buffer, 0, kBytes, 0);
      return true;
    });
  }

  void make_image() {
    VkImageCreateInfo info{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    info.imageType = VK_IMAGE_TYPE_2D;
    info.format = VK_FORMAT_R32_SFLOAT;
    info.extent = {kTexels.width, kTexels.height, 1};
    info.mipLevels = info.arrayLayers = 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    check(call<PFN_vkCreateImage>("vkCreateImage")(device, &info, nullptr, &image),
          "vkCreateImage");
    VkMemoryRequirements needs;
    call<PFN_vkGetImageMemoryRequirements>("vkGetImageMemoryRequirements")(device, image, &needs);
    check(call<PFN_vkBindImageMemory>("vkBindImageMemory")(device, image, memory_for(needs), 0),
          "vkBindImageMemory");
  }

  MulciberContext* context_ = nullptr;
  InstanceFunctions instance_vk_;
  DeviceFunctions vk_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

}  // namespace mulciber::fuzz
