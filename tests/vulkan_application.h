// A test's application with an instance and a device of its own, as an application that embeds the
// library has them.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "mulciber/embedding.h"
#include "runtime/vulkan.h"
#include "tests/catch.h"

namespace mulciber::tests {

class VulkanApplication {
 public:
  /// with_features: enables the features that requirements() names; otherwise none. chain: is
  /// given to vkCreateDevice once those features are set in it; null: a chain of their own.
  explicit VulkanApplication(bool with_features = true, uint32_t api_version = VK_API_VERSION_1_2,
                             VkPhysicalDeviceFeatures2* chain = nullptr) {
    const PFN_vkGetInstanceProcAddr entry = vulkan_loader();
    REQUIRE(entry);
    VkApplicationInfo application_info{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application_info.apiVersion = api_version;
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application_info;
    const char* layer = "VK_LAYER_KHRONOS_validation";
    const char* validate = std::getenv("MULCIBER_VALIDATE");
    if (validate && std::string(validate) == "1") {
      info.enabledLayerCount = 1;
      info.ppEnabledLayerNames = &layer;
    }
    const auto create = reinterpret_cast<PFN_vkCreateInstance>(entry(nullptr, "vkCreateInstance"));
    REQUIRE(create(&info, nullptr, &physical.instance) == VK_SUCCESS);
    instance_vk = instance_functions(entry, physical.instance);
    physical.get_instance_proc_addr = entry;
    physical.api_version = api_version;
    uint32_t count = 1;
    instance_vk.vkEnumeratePhysicalDevices(physical.instance, &count, &physical.physical_device);
    REQUIRE(count == 1);
    asked = requirements(physical);
    if (chain) unplaced = enable(asked, chain);
    if (with_features) features_ = chain ? chain : asked.features;

    const float priority = 1;
    VkDeviceQueueCreateInfo queue_info{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue_info.queueFamilyIndex = asked.queue_family;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    std::vector<const char*> names;
    for (const std::string& name : asked.extensions) names.push_back(name.c_str());
    VkDeviceCreateInfo device_info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    if (with_features) {
      device_info.pNext = features_;
      device_info.enabledExtensionCount = static_cast<uint32_t>(names.size());
      device_info.ppEnabledExtensionNames = names.data();
    }
    REQUIRE(instance_vk.vkCreateDevice(physical.physical_device, &device_info, nullptr, &device) ==
            VK_SUCCESS);
    vk = device_functions(instance_vk, device);
    vk.vkGetDeviceQueue(device, asked.queue_family, 0, &queue);
  }
  ~VulkanApplication() {
    if (device) vk.vkDestroyDevice(device, nullptr);
    if (physical.instance) instance_vk.vkDestroyInstance(physical.instance, nullptr);
  }
  VulkanApplication(const VulkanApplication&) = delete;

  ApplicationDevice lent() const {
    ApplicationDevice application;
    application.physical = physical;
    application.device = device;
    application.queue = {.queue = queue, .family = asked.queue_family};
    if (features_) {
      application.enabled_extensions = asked.extensions;
      application.enabled_features = features_;
    }
    return application;
  }

  ApplicationPhysicalDevice physical;
  Requirements asked;
  std::vector<UnplacedFeature> unplaced;  // features without a structure in the chain
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  InstanceFunctions instance_vk;
  DeviceFunctions vk;

 private:
  const VkPhysicalDeviceFeatures2* features_ = nullptr;  // null: none are enabled
};

/// Allocates memory as an application's ApplicationAllocator, and maps it where it can be mapped.
inline VkResult allocate_lent(const VulkanApplication& application, const MemoryRequest& request,
                              ApplicationMemory* memory) {
  VkPhysicalDeviceMemoryProperties types;
  application.instance_vk.vkGetPhysicalDeviceMemoryProperties(application.physical.physical_device,
                                                              &types);
  VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  if (request.device_address) info.pNext = &flags;
  info.allocationSize = request.requirements.size;
  for (uint32_t i = 0; i < types.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags has = types.memoryTypes[i].propertyFlags;
    if (!(request.requirements.memoryTypeBits >> i & 1)) continue;
    if ((has & request.required) != request.required) continue;
    info.memoryTypeIndex = i;
    const VkResult result =
        application.vk.vkAllocateMemory(application.device, &info, nullptr, &memory->memory);
    if (result != VK_SUCCESS || !(has & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) return result;
    return application.vk.vkMapMemory(application.device, memory->memory, 0, VK_WHOLE_SIZE, 0,
                                      &memory->mapped);
  }
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

/// An application's command buffer, which is submitted and waited for.
class ApplicationCommands {
 public:
  explicit ApplicationCommands(const VulkanApplication& application) : application_(application) {
    VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    pool.queueFamilyIndex = application.asked.queue_family;
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    REQUIRE(application.vk.vkCreateCommandPool(application.device, &pool, nullptr, &pool_) ==
            VK_SUCCESS);
    VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    info.commandPool = pool_;
    info.commandBufferCount = 1;
    REQUIRE(application.vk.vkAllocateCommandBuffers(application.device, &info, &commands_) ==
            VK_SUCCESS);
    VkFenceCreateInfo fence{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    REQUIRE(application.vk.vkCreateFence(application.device, &fence, nullptr, &fence_) ==
            VK_SUCCESS);
  }
  ~ApplicationCommands() {
    application_.vk.vkDestroyFence(application_.device, fence_, nullptr);
    application_.vk.vkDestroyCommandPool(application_.device, pool_, nullptr);
  }
  template <typename Record>
  void run(const Record& record) {
    drop(record);
    VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands_;
    REQUIRE(application_.vk.vkQueueSubmit(application_.queue, 1, &info, fence_) == VK_SUCCESS);
    REQUIRE(application_.vk.vkWaitForFences(application_.device, 1, &fence_, VK_TRUE,
                                            60'000'000'000) == VK_SUCCESS);
    REQUIRE(application_.vk.vkResetFences(application_.device, 1, &fence_) == VK_SUCCESS);
  }

  /// Records what is never submitted: a frame that is dropped.
  template <typename Record>
  void drop(const Record& record) {
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    REQUIRE(application_.vk.vkBeginCommandBuffer(commands_, &begin) == VK_SUCCESS);
    record(commands_);
    REQUIRE(application_.vk.vkEndCommandBuffer(commands_) == VK_SUCCESS);
  }

 private:
  const VulkanApplication& application_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
};

}  // namespace mulciber::tests
