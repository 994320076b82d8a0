// A Vulkan instance and the messages of the validation layer.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mulciber/application_device.h"
#include "runtime/vulkan.h"

namespace mulciber {

/// Each device has an instance of its own, so that devices are independent and Mulciber has no
/// global state.
struct InstanceHandle {
  VkInstance instance = VK_NULL_HANDLE;
  bool owned = true;
  InstanceFunctions vk;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  uint32_t version = VK_API_VERSION_1_1;
  std::mutex mutex;
  std::vector<std::string> messages;

  ~InstanceHandle();
};

/// Makes an instance. validate: with the Khronos validation layer and synchronization validation,
/// whose messages are collected. debug_labels: with the functions for labels, where the loader has
/// them. Throws DeviceError when there is no Vulkan loader, no driver, or no such layer.
std::shared_ptr<InstanceHandle> create_instance(bool validate, bool debug_labels = false);

/// Wraps an application's instance, which is left as it is. Throws DeviceError where a handle is
/// missing.
std::shared_ptr<InstanceHandle> borrow_instance(const ApplicationPhysicalDevice& application);

/// Describes a failure in words, for messages.
const char* name_of(VkResult result);

}  // namespace mulciber
