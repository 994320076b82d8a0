#include "runtime/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "mulciber/error.h"

namespace mulciber {
namespace {

using Kind = DeviceError::Kind;

// The newest Vulkan version that anything here uses. A driver may refuse an instance of a version
// newer than its own, as Chromium's SwiftShader does.
constexpr uint32_t kNewestVersion = VK_MAKE_API_VERSION(0, 1, 3, VK_HEADER_VERSION);
constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

VKAPI_ATTR VkBool32 VKAPI_CALL collect_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                               VkDebugUtilsMessageTypeFlagsEXT,
                                               const VkDebugUtilsMessengerCallbackDataEXT* data,
                                               void* user) {
  auto* handle = static_cast<InstanceHandle*>(user);
  std::lock_guard lock(handle->mutex);
  handle->messages.push_back(data->pMessage ? data->pMessage : "");
  return VK_FALSE;
}

bool offers_extension(PFN_vkGetInstanceProcAddr entry, std::string_view name) {
  const auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(
      entry(nullptr, "vkEnumerateInstanceExtensionProperties"));
  uint32_t count = 0;
  if (!enumerate || enumerate(nullptr, &count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkExtensionProperties> found(count);
  if (enumerate(nullptr, &count, found.data()) < VK_SUCCESS) return false;
  found.resize(count);
  return std::ranges::any_of(
      found, [&](const VkExtensionProperties& each) { return each.extensionName == name; });
}

}  // namespace

InstanceHandle::~InstanceHandle() {
  if (messenger) vk.vkDestroyDebugUtilsMessengerEXT(instance, messenger, nullptr);
  if (instance && owned) vk.vkDestroyInstance(instance, nullptr);
}

const char* name_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "out of host memory";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "out of device memory";
    case VK_ERROR_DEVICE_LOST: return "device lost";
    case VK_ERROR_INITIALIZATION_FAILED: return "initialization failed";
    case VK_ERROR_LAYER_NOT_PRESENT: return "layer not present";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "extension not present";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "feature not present";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "incompatible driver";
    case VK_ERROR_TOO_MANY_OBJECTS: return "too many objects";
    case VK_TIMEOUT: return "timeout";
    default: return "unknown error";
  }
}

std::shared_ptr<InstanceHandle> create_instance(bool validate, bool debug_labels) {
  const PFN_vkGetInstanceProcAddr entry = vulkan_loader();
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(entry ? entry(nullptr, "vkCreateInstance") : nullptr);
  if (!create) {
    throw DeviceError(
        Kind::kUnavailable, "Vulkan", "no Vulkan loader (libvulkan.so.1) on this machine",
        "install libvulkan1 and a driver; mesa-vulkan-drivers has one that runs on the CPU");
  }
  auto handle = std::make_shared<InstanceHandle>();
  handle->version = VK_API_VERSION_1_0;
  if (const auto version = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
          entry(nullptr, "vkEnumerateInstanceVersion"))) {
    version(&handle->version);
  }
  handle->version =
      std::min({handle->version, uint32_t{VK_HEADER_VERSION_COMPLETE}, kNewestVersion});
  VkApplicationInfo application_info{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application_info.pApplicationName = "mulciber";
  application_info.pEngineName = "mulciber";
  application_info.apiVersion = handle->version;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application_info;

  VkValidationFeatureEnableEXT enabled[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = enabled;
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  info.ppEnabledExtensionNames = extensions;
  if (validate) {  // the layer has the extension
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &kValidationLayer;
    info.enabledExtensionCount = 1;
  } else if (debug_labels && offers_extension(entry, extensions[0])) {
    info.enabledExtensionCount = 1;
  }
  VkResult result = create(&info, nullptr, &handle->instance);
  if (result == VK_ERROR_LAYER_NOT_PRESENT) {
    throw DeviceError(Kind::kUnavailable, "validate",
                      "the Khronos validation layer is not installed",
                      "install vulkan-validationlayers");
  }
  if (result != VK_SUCCESS) {
    throw DeviceError(
        Kind::kUnavailable, "Vulkan",
        fmt::format("no driver could be loaded ({})", name_of(result)),
        "install a driver (mesa-vulkan-drivers has one that runs on the CPU), or look at "
        "VK_DRIVER_FILES");
  }
  handle->vk = instance_functions(entry, handle->instance);
  if (validate) {
    VkDebugUtilsMessengerCreateInfoEXT messenger{
        VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = collect_message;
    messenger.pUserData = handle.get();
    handle->vk.vkCreateDebugUtilsMessengerEXT(handle->instance, &messenger, nullptr,
                                              &handle->messenger);
  }
  return handle;
}

std::shared_ptr<InstanceHandle> borrow_instance(const ApplicationPhysicalDevice& application) {
  if (!application.instance || !application.physical_device ||
      !application.get_instance_proc_addr) {
    throw DeviceError(Kind::kUnavailable, "ApplicationPhysicalDevice",
                      "lacks the instance, the physical device or get_instance_proc_addr",
                      "fill all three");
  }
  auto handle = std::make_shared<InstanceHandle>();
  handle->instance = application.instance;
  handle->owned = false;
  handle->version = application.api_version;
  handle->vk = instance_functions(application.get_instance_proc_addr, application.instance);
  return handle;
}

}  // namespace mulciber
