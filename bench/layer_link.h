// Data that the loader gives a Vulkan layer when an instance or a device is made: the entry points
// of the next layer.
#pragma once

#include <vulkan/vk_layer.h>

namespace mulciber {

template <class Info>
Info* link_of(const void* chain, VkStructureType type) {
  auto* info = static_cast<Info*>(const_cast<void*>(chain));
  while (info && (info->sType != type || info->function != VK_LAYER_LINK_INFO))
    info = static_cast<Info*>(const_cast<void*>(info->pNext));
  return info;
}

/// The functions of the next layer; advances the chain, so that it begins at that layer's link. An
/// entry is nullptr where the chain has no link.
struct LayerBelow {
  PFN_vkGetInstanceProcAddr instance_entry = nullptr;
  PFN_vkGetDeviceProcAddr device_entry = nullptr;  // for a device
};
inline LayerBelow layer_below(const VkInstanceCreateInfo& create) {
  auto* link = link_of<VkLayerInstanceCreateInfo>(create.pNext,
                                                  VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  if (!link) return {};
  const LayerBelow below = {link->u.pLayerInfo->pfnNextGetInstanceProcAddr};
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  return below;
}
inline LayerBelow layer_below(const VkDeviceCreateInfo& create) {
  auto* link =
      link_of<VkLayerDeviceCreateInfo>(create.pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  if (!link) return {};
  const LayerBelow below = {link->u.pLayerInfo->pfnNextGetInstanceProcAddr,
                            link->u.pLayerInfo->pfnNextGetDeviceProcAddr};
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  return below;
}

}  // namespace mulciber
