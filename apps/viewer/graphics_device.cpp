#include "apps/viewer/graphics_device.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace mulciber::viewer {
namespace {

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

/// The first queue family that draws, computes and, where there is a window, presents.
std::optional<uint32_t> family_of(VkPhysicalDevice device, VkSurfaceKHR surface) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  constexpr VkQueueFlags kBoth = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
  for (uint32_t i = 0; i < count; ++i) {
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

GraphicsDevice::GraphicsDevice(const std::string& name, const SurfaceNeeds& needs) {
  physical_.get_instance_proc_addr = vkGetInstanceProcAddr;
  physical_.api_version = VK_API_VERSION_1_2;
  VkApplicationInfo application_info{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application_info.pApplicationName = "mulciber-viewer";
  application_info.apiVersion = physical_.api_version;
  VkInstanceCreateInfo instance_info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  instance_info.pApplicationInfo = &application_info;
  instance_info.enabledExtensionCount = static_cast<uint32_t>(needs.instance_extensions.size());
  instance_info.ppEnabledExtensionNames = needs.instance_extensions.data();
  check(vkCreateInstance(&instance_info, nullptr, &physical_.instance), "vkCreateInstance");
  if (needs.make_surface) surface_ = needs.make_surface(physical_.instance);
  choose(name);
  make_device();
}

GraphicsDevice::~GraphicsDevice() {
  if (device_) {
    vkDestroyCommandPool(device_, pool_, nullptr);
    vkDestroyDevice(device_, nullptr);
  }
  if (surface_) vkDestroySurfaceKHR(physical_.instance, surface_, nullptr);
  vkDestroyInstance(physical_.instance, nullptr);
}

void GraphicsDevice::choose(const std::string& name) {
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
    return;
  }
  throw DeviceError(DeviceError::Kind::kUnavailable, name,
                    "no such device has a queue that draws, computes and presents",
                    "there are: " + there);
}

void GraphicsDevice::make_device() {
  asked_ = requirements(physical_);
  if (!asked_.fits())
    throw DeviceError(DeviceError::Kind::kUnavailable, properties_.deviceName,
                      asked_.obstacles.front());
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
  VkCommandPoolCreateInfo pool_info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool_info.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  pool_info.queueFamilyIndex = family_;
  check(vkCreateCommandPool(device_, &pool_info, nullptr, &pool_), "vkCreateCommandPool");

  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical_.physical_device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_.physical_device, &count, families.data());
  timestamp_bits_ = families[family_].timestampValidBits;
  const VkPhysicalDeviceLimits& limits = properties_.limits;
  if (limits.framebufferColorSampleCounts & limits.framebufferDepthSampleCounts &
      VK_SAMPLE_COUNT_4_BIT)
    samples_ = VK_SAMPLE_COUNT_4_BIT;
  VkFormatProperties depth;
  vkGetPhysicalDeviceFormatProperties(physical_.physical_device, depth_format_, &depth);
  if (!(depth.optimalTilingFeatures & VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT))
    depth_format_ = VK_FORMAT_X8_D24_UNORM_PACK32;  // every device supports one of the two formats
}

ApplicationDevice GraphicsDevice::lent() const {
  ApplicationDevice application;
  application.physical = physical_;
  application.device = device_;
  application.queue = {.queue = queue_, .family = family_};
  application.enabled_extensions = enabled_extensions_;
  application.enabled_features = asked_.features;
  return application;
}

VkDeviceMemory GraphicsDevice::allocate(const VkMemoryRequirements& needs,
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

void GraphicsDevice::run(const std::function<void(VkCommandBuffer)>& record) {
  VkCommandBufferAllocateInfo allocate_info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  allocate_info.commandPool = pool_;
  allocate_info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(vkAllocateCommandBuffers(device_, &allocate_info, &commands), "vkAllocateCommandBuffers");
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  record(commands);
  check(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  VkSubmitInfo submission{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submission.commandBufferCount = 1;
  submission.pCommandBuffers = &commands;
  check(vkQueueSubmit(queue_, 1, &submission, VK_NULL_HANDLE), "vkQueueSubmit");
  check(vkQueueWaitIdle(queue_), "vkQueueWaitIdle");
  vkFreeCommandBuffers(device_, pool_, 1, &commands);
}

Image::Image(GraphicsDevice& device, const ImageDescription& description)
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

Buffer::Buffer(GraphicsDevice& device, VkDeviceSize bytes, VkBufferUsageFlags usage)
    : device_(device.handle()), size_(bytes) {
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = bytes;
  info.usage = usage;
  check(vkCreateBuffer(device_, &info, nullptr, &buffer_), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device_, buffer_, &needs);
  memory_ = device.allocate(
      needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  check(vkBindBufferMemory(device_, buffer_, memory_, 0), "vkBindBufferMemory");
  check(vkMapMemory(device_, memory_, 0, VK_WHOLE_SIZE, 0, &mapped_), "vkMapMemory");
}

Buffer::~Buffer() {
  vkDestroyBuffer(device_, buffer_, nullptr);
  vkFreeMemory(device_, memory_, nullptr);
}

}  // namespace mulciber::viewer
