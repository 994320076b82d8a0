#include "runtime/queue_families.h"

#include <algorithm>

namespace mulciber {

std::vector<VkQueueFamilyProperties> queue_families(const InstanceFunctions& vk,
                                                    VkPhysicalDevice device) {
  uint32_t count = 0;
  vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  return families;
}

std::optional<uint32_t> first_compute_family(std::span<const VkQueueFamilyProperties> families) {
  const auto family = std::ranges::find_if(families, computes);
  if (family == families.end()) return std::nullopt;
  return static_cast<uint32_t>(family - families.begin());
}

std::optional<QueuePlace> second_compute_queue(std::span<const VkQueueFamilyProperties> families,
                                               uint32_t first) {
  if (families[first].queueCount >= 2) return QueuePlace{first, 1};
  for (uint32_t i = 0; i < families.size(); ++i) {
    if (i != first && computes(families[i])) return QueuePlace{i, 0};
  }
  return std::nullopt;
}

}  // namespace mulciber
