#include "runtime/queue_priority.h"

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/device_features.h"

namespace mulciber {
namespace {

VkQueueGlobalPriorityEXT vulkan_priority(QueuePriority priority) {
  switch (priority) {
    case QueuePriority::kLow: return VK_QUEUE_GLOBAL_PRIORITY_LOW_EXT;
    case QueuePriority::kHigh: return VK_QUEUE_GLOBAL_PRIORITY_HIGH_EXT;
    case QueuePriority::kRealtime: return VK_QUEUE_GLOBAL_PRIORITY_REALTIME_EXT;
    default: return VK_QUEUE_GLOBAL_PRIORITY_MEDIUM_EXT;
  }
}

QueuePriority next_lower(QueuePriority priority) {
  return priority == QueuePriority::kRealtime ? QueuePriority::kHigh : QueuePriority::kDefault;
}

/// The name under which the device offers the extension; null: it does not.
const char* priority_extension(const InstanceFunctions& vk, VkPhysicalDevice physical) {
  const std::vector<std::string> offered = device_extensions(vk, physical);
  for (const char* name : {"VK_KHR_global_priority", VK_EXT_GLOBAL_PRIORITY_EXTENSION_NAME}) {
    if (std::ranges::find(offered, name) != offered.end()) return name;
  }
  return nullptr;
}

}  // namespace

VkResult create_with_priority(const InstanceFunctions& vk, VkPhysicalDevice physical,
                              const VkDeviceCreateInfo& info, QueuePriority* priority,
                              VkDevice* device) {
  const char* extension =
      *priority == QueuePriority::kDefault ? nullptr : priority_extension(vk, physical);
  if (extension) {
    std::vector<const char*> extensions(info.ppEnabledExtensionNames,
                                        info.ppEnabledExtensionNames + info.enabledExtensionCount);
    extensions.push_back(extension);
    VkDeviceQueueGlobalPriorityCreateInfoEXT global{
        VK_STRUCTURE_TYPE_DEVICE_QUEUE_GLOBAL_PRIORITY_CREATE_INFO_EXT};
    std::vector<VkDeviceQueueCreateInfo> queues(info.pQueueCreateInfos,
                                                info.pQueueCreateInfos + info.queueCreateInfoCount);
    for (VkDeviceQueueCreateInfo& queue : queues) queue.pNext = &global;
    VkDeviceCreateInfo prioritized = info;
    prioritized.pQueueCreateInfos = queues.data();
    prioritized.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
    prioritized.ppEnabledExtensionNames = extensions.data();
    for (; *priority != QueuePriority::kDefault; *priority = next_lower(*priority)) {
      global.globalPriority = vulkan_priority(*priority);
      const VkResult result = vk.vkCreateDevice(physical, &prioritized, nullptr, device);
      // Drivers return either error for a priority that they do not grant.
      if (result != VK_ERROR_NOT_PERMITTED_EXT && result != VK_ERROR_INITIALIZATION_FAILED)
        return result;
    }
  }
  *priority = QueuePriority::kDefault;
  return vk.vkCreateDevice(physical, &info, nullptr, device);
}

const char* name_of(QueuePriority priority) {
  switch (priority) {
    case QueuePriority::kLow: return "low";
    case QueuePriority::kHigh: return "high";
    case QueuePriority::kRealtime: return "realtime";
    default: return "default";
  }
}

}  // namespace mulciber
