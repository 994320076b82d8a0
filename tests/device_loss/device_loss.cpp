// A Vulkan layer that loses devices, for tests of unmodified programs. Two files control it:
//   $DEVICE_LOSS.lose    the next submission to a queue removes it and loses the device
//   $DEVICE_LOSS.closed  while it exists, no device can be created
#include <vulkan/vk_layer.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "bench/layer_link.h"

namespace {

/// State of an instance or a device, keyed by the loader's table that its handles begin with.
struct Below {
  PFN_vkGetInstanceProcAddr instance_entry = nullptr;
  PFN_vkGetDeviceProcAddr device_entry = nullptr;
  PFN_vkQueueSubmit submit = nullptr;
  bool lost = false;
};
std::mutex mutex;
std::map<void*, Below> known;

template <class Handle>
void* key(Handle handle) {
  return *reinterpret_cast<void**>(handle);
}

template <class Handle>
Below below(Handle handle) {
  const std::lock_guard lock(mutex);
  return known[key(handle)];
}

std::string file(const char* ending) {
  const char* path = std::getenv("DEVICE_LOSS");
  return std::string(path ? path : "device") + ending;
}

VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* create,
                                               const VkAllocationCallbacks* callbacks,
                                               VkInstance* instance) {
  const PFN_vkGetInstanceProcAddr entry = mulciber::layer_below(*create).instance_entry;
  if (!entry) return VK_ERROR_INITIALIZATION_FAILED;
  const auto next = reinterpret_cast<PFN_vkCreateInstance>(entry(nullptr, "vkCreateInstance"));
  const VkResult result = next(create, callbacks, instance);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(mutex);
  known[key(*instance)] = {.instance_entry = entry};
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* create,
                                             const VkAllocationCallbacks* callbacks,
                                             VkDevice* device) {
  if (std::filesystem::exists(file(".closed"))) return VK_ERROR_INITIALIZATION_FAILED;
  const mulciber::LayerBelow layer = mulciber::layer_below(*create);
  if (!layer.device_entry) return VK_ERROR_INITIALIZATION_FAILED;
  const auto next =
      reinterpret_cast<PFN_vkCreateDevice>(layer.instance_entry(nullptr, "vkCreateDevice"));
  const VkResult result = next(physical, create, callbacks, device);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(mutex);
  known[key(*device)] = {
      .device_entry = layer.device_entry,
      .submit = reinterpret_cast<PFN_vkQueueSubmit>(layer.device_entry(*device, "vkQueueSubmit"))};
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* submits,
                                      VkFence fence) {
  PFN_vkQueueSubmit next = nullptr;
  {
    const std::lock_guard lock(mutex);
    Below& device = known[key(queue)];
    std::error_code error;
    if (std::filesystem::remove(file(".lose"), error)) device.lost = true;
    if (device.lost) return VK_ERROR_DEVICE_LOST;
    next = device.submit;
  }
  return next(queue, count, submits, fence);
}

PFN_vkVoidFunction own(std::string_view name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_entry(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = own(name);
  return found ? found : below(device).device_entry(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_entry(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = own(name);
  return found || !instance ? found : below(instance).instance_entry(instance, name);
}

PFN_vkVoidFunction own(std::string_view name) {
  if (name == "vkGetInstanceProcAddr") return reinterpret_cast<PFN_vkVoidFunction>(instance_entry);
  if (name == "vkGetDeviceProcAddr") return reinterpret_cast<PFN_vkVoidFunction>(device_entry);
  if (name == "vkCreateInstance") return reinterpret_cast<PFN_vkVoidFunction>(create_instance);
  if (name == "vkCreateDevice") return reinterpret_cast<PFN_vkVoidFunction>(create_device);
  if (name == "vkQueueSubmit") return reinterpret_cast<PFN_vkVoidFunction>(submit);
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = instance_entry;
  version->pfnGetDeviceProcAddr = device_entry;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
