#include "device.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace graphics {
namespace {

using mulciber::DeviceError;

/// Ranks hardware before software.
int rank_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 4;
    default: return 3;
  }
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

VkPhysicalDeviceProperties properties_of(VkPhysicalDevice device) {
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(device, &properties);
  return properties;
}

std::vector<VkQueueFamilyProperties> families_of(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  return families;
}

/// The first queue family that draws, computes and, where there is a window, presents.
std::optional<uint32_t> family_of(VkPhysicalDevice device, VkSurfaceKHR surface) {
  const std::vector<VkQueueFamilyProperties> families = families_of(device);
  constexpr VkQueueFlags kBoth = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
  for (uint32_t i = 0; i < families.size(); ++i) {
    if ((families[i].queueFlags & kBoth) != kBoth) continue;
    VkBool32 presents = surface == VK_NULL_HANDLE;
    if (!presents) vkGetPhysicalDeviceSurfaceSupportKHR(device, i, surface, &presents);
    if (presents) return i;
  }
  return std::nullopt;
}

}  // namespace

void check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  const bool lost = result == VK_ERROR_DEVICE_LOST;
  const bool memory =
      result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
  throw DeviceError(lost     ? DeviceError::Kind::kLost
                    : memory ? DeviceError::Kind::kOutOfMemory
                             : DeviceError::Kind::kFailed,
                    call, "failed with VkResult " + std::to_string(result));
}

Device::Device(const DeviceDescription& description) {
  physical_.get_instance_proc_addr = vkGetInstanceProcAddr;
  physical_.api_version = VK_API_VERSION_1_2;
  VkApplicationInfo application_info{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application_info.pApplicationName = description.application;
  application_info.apiVersion = physical_.api_version;
  const std::vector<const char*>& extensions = description.surface.instance_extensions;
  VkInstanceCreateInfo instance_info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  instance_info.pApplicationInfo = &application_info;
  instance_info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  instance_info.ppEnabledExtensionNames = extensions.data();
  check(vkCreateInstance(&instance_info, nullptr, &physical_.instance), "vkCreateInstance");
  if (description.surface.make_surface)
    surface_ = description.surface.make_surface(physical_.instance);
  choose(description.name);
  make_device(description.model);
  make_commands();
}

Device::~Device() {
  vkDestroyFence(device_, fence_, nullptr);
  vkDestroyCommandPool(device_, pool_, nullptr);
  vkDestroyDevice(device_, nullptr);
  if (surface_) vkDestroySurfaceKHR(physical_.instance, surface_, nullptr);
  vkDestroyInstance(physical_.instance, nullptr);
}

void Device::choose(const std::string& name) {
  uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(physical_.instance, &count, nullptr),
        "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> devices(count);
  check(vkEnumeratePhysicalDevices(physical_.instance, &count, devices.data()),
        "vkEnumeratePhysicalDevices");
  std::stable_sort(devices.begin(), devices.end(), [](VkPhysicalDevice a, VkPhysicalDevice b) {
    return rank_of(properties_of(a).deviceType) < rank_of(properties_of(b).deviceType);
  });
  std::string there;
  for (size_t i = 0; i < devices.size(); ++i) {
    const VkPhysicalDeviceProperties properties = properties_of(devices[i]);
    const bool named = name.empty() || name == std::to_string(i) ||
                       lower(properties.deviceName).find(lower(name)) != std::string::npos;
    there += (i ? ", " : "") + std::string(properties.deviceName);
    const std::optional<uint32_t> family = family_of(devices[i], surface_);
    if (!named || !family) continue;
    physical_.physical_device = devices[i];
    properties_ = properties;
    family_ = *family;
    timestamp_bits_ = families_of(devices[i])[family_].timestampValidBits;
    return;
  }
  throw DeviceError(DeviceError::Kind::kUnavailable, name,
                    "no such device has a queue that draws, computes and presents",
                    "there are: " + there);
}

void Device::make_device(const mulciber::OpenModel* model) {
  asked_ = model ? mulciber::requirements(physical_, *model) : mulciber::requirements(physical_);
  std::string obstacles;
  for (const std::string& obstacle : asked_.obstacles)
    obstacles += (obstacles.empty() ? "" : "\n") + obstacle;
  if (!asked_.fits())
    throw DeviceError(DeviceError::Kind::kUnavailable, properties_.deviceName, obstacles);
  enabled_extensions_ = asked_.extensions;
  if (surface_) enabled_extensions_.emplace_back(VK_KHR_SWAPCHAIN_EXTENSION_NAME);
  std::vector<const char*> names;
  for (const std::string& extension : enabled_extensions_) names.push_back(extension.c_str());
  const float priority = 1;
  VkDeviceQueueCreateInfo queue_info{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue_info.queueFamilyIndex = family_;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkDeviceCreateInfo device_info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  device_info.pNext = asked_.features;
  device_info.queueCreateInfoCount = 1;
  device_info.pQueueCreateInfos = &queue_info;
  device_info.enabledExtensionCount = static_cast<uint32_t>(names.size());
  device_info.ppEnabledExtensionNames = names.data();
  check(vkCreateDevice(physical_.physical_device, &device_info, nullptr, &device_),
        "vkCreateDevice");
  vkGetDeviceQueue(device_, family_, 0, &queue_);
}

void Device::make_commands() {
  VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  pool_info.queueFamilyIndex = family_;
  check(vkCreateCommandPool(device_, &pool_info, nullptr, &pool_), "vkCreateCommandPool");
  VkCommandBufferAllocateInfo buffer_info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  buffer_info.commandPool = pool_;
  buffer_info.commandBufferCount = 1;
  check(vkAllocateCommandBuffers(device_, &buffer_info, &commands_), "vkAllocateCommandBuffers");
  VkFenceCreateInfo fence_info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  check(vkCreateFence(device_, &fence_info, nullptr, &fence_), "vkCreateFence");
}

mulciber::ApplicationDevice Device::lent() const {
  mulciber::ApplicationDevice application;
  application.physical = physical_;
  application.device = device_;
  application.queue = {.queue = queue_, .family = family_};
  application.enabled_extensions = enabled_extensions_;
  application.enabled_features = asked_.features;
  return application;
}

VkDeviceMemory Device::allocate(const VkMemoryRequirements& needs,
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
  return memory;
}

void Device::run(const std::function<void(VkCommandBuffer)>& record) {
  // An exception may have left commands that were not submitted.
  check(vkResetCommandPool(device_, pool_, 0), "vkResetCommandPool");
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
  record(commands_);
  check(vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
  VkSubmitInfo submission{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submission.commandBufferCount = 1;
  submission.pCommandBuffers = &commands_;
  check(vkQueueSubmit(queue_, 1, &submission, fence_), "vkQueueSubmit");
  check(vkWaitForFences(device_, 1, &fence_, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  check(vkResetFences(device_, 1, &fence_), "vkResetFences");
}

}  // namespace graphics
