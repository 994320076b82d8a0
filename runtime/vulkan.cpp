#include "runtime/vulkan.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace mulciber {

InstanceFunctions instance_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance) {
  InstanceFunctions vk;
  vk.vkGetInstanceProcAddr = get;
#define MULCIBER_LOAD(name) vk.name = reinterpret_cast<PFN_##name>(get(instance, #name));
  MULCIBER_INSTANCE_FUNCTIONS(MULCIBER_LOAD)
#undef MULCIBER_LOAD
  return vk;
}

DeviceFunctions device_functions(const InstanceFunctions& instance, VkDevice device) {
  DeviceFunctions vk;
  const PFN_vkGetDeviceProcAddr get = instance.vkGetDeviceProcAddr;
#define MULCIBER_LOAD(name) vk.name = reinterpret_cast<PFN_##name>(get(device, #name));
  MULCIBER_DEVICE_FUNCTIONS(MULCIBER_LOAD)
#undef MULCIBER_LOAD
  if (!vk.vkGetBufferDeviceAddress) {
    vk.vkGetBufferDeviceAddress =
        reinterpret_cast<PFN_vkGetBufferDeviceAddress>(get(device, "vkGetBufferDeviceAddressKHR"));
  }
  if (!vk.vkWaitSemaphores)
    vk.vkWaitSemaphores =
        reinterpret_cast<PFN_vkWaitSemaphores>(get(device, "vkWaitSemaphoresKHR"));
  return vk;
}

PFN_vkGetInstanceProcAddr vulkan_loader() {
  static const PFN_vkGetInstanceProcAddr kEntry = [] {
    constexpr const char* kName = "vkGetInstanceProcAddr";
#ifdef _WIN32
    const HMODULE library = LoadLibraryA("vulkan-1.dll");
    return reinterpret_cast<PFN_vkGetInstanceProcAddr>(
        library ? reinterpret_cast<void*>(GetProcAddress(library, kName)) : nullptr);
#else
#ifdef __APPLE__
    constexpr const char* kNames[] = {"libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"};
#else
    constexpr const char* kNames[] = {"libvulkan.so.1", "libvulkan.so"};
#endif
    void* library = nullptr;
    for (const char* name : kNames) {
      if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    return reinterpret_cast<PFN_vkGetInstanceProcAddr>(library ? dlsym(library, kName) : nullptr);
#endif
  }();
  return kEntry;
}

}  // namespace mulciber
