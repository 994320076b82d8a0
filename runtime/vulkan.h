// Tables of Vulkan functions of one instance or one device, looked up by name. Nothing is global,
// so that one process can hold devices of several applications, with loaders or drivers of their
// own.
#pragma once

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

#include "runtime/recent_vulkan.h"

namespace mulciber {

// clang-format off
#define MULCIBER_INSTANCE_FUNCTIONS(F)         \
  F(vkDestroyInstance)                         \
  F(vkEnumeratePhysicalDevices)                \
  F(vkEnumerateDeviceExtensionProperties)      \
  F(vkGetPhysicalDeviceProperties)             \
  F(vkGetPhysicalDeviceProperties2)            \
  F(vkGetPhysicalDeviceFeatures2)              \
  F(vkGetPhysicalDeviceMemoryProperties)       \
  F(vkGetPhysicalDeviceMemoryProperties2)      \
  F(vkGetPhysicalDeviceQueueFamilyProperties)  \
  F(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) \
  F(vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV) \
  F(vkCreateDebugUtilsMessengerEXT)            \
  F(vkDestroyDebugUtilsMessengerEXT)           \
  F(vkCmdBeginDebugUtilsLabelEXT)              \
  F(vkCmdEndDebugUtilsLabelEXT)                \
  F(vkCreateDevice)                            \
  F(vkGetDeviceProcAddr)

#define MULCIBER_DEVICE_FUNCTIONS(F)     \
  F(vkAllocateCommandBuffers)            \
  F(vkAllocateDescriptorSets)            \
  F(vkAllocateMemory)                    \
  F(vkBeginCommandBuffer)                \
  F(vkBindBufferMemory)                  \
  F(vkCmdBindDescriptorSets)             \
  F(vkCmdBindPipeline)                   \
  F(vkCmdCopyBuffer)                     \
  F(vkCmdCopyBufferToImage)              \
  F(vkCmdDispatch)                       \
  F(vkCmdFillBuffer)                     \
  F(vkCmdPipelineBarrier)                \
  F(vkCmdPushConstants)                  \
  F(vkCmdResetQueryPool)                 \
  F(vkCmdSetComputeOccupancyPriorityNV)  \
  F(vkCmdUpdateBuffer)                   \
  F(vkCmdWriteTimestamp)                 \
  F(vkCreateBuffer)                      \
  F(vkCreateBufferView)                  \
  F(vkCreateCommandPool)                 \
  F(vkCreateComputePipelines)            \
  F(vkCreateDescriptorPool)              \
  F(vkCreateDescriptorSetLayout)         \
  F(vkCreateFence)                       \
  F(vkCreatePipelineCache)               \
  F(vkCreatePipelineLayout)              \
  F(vkCreateQueryPool)                   \
  F(vkCreateSemaphore)                   \
  F(vkCreateShaderModule)                \
  F(vkDestroyBuffer)                     \
  F(vkDestroyBufferView)                 \
  F(vkDestroyCommandPool)                \
  F(vkDestroyDescriptorPool)             \
  F(vkDestroyDescriptorSetLayout)        \
  F(vkDestroyDevice)                     \
  F(vkDestroyFence)                      \
  F(vkDestroyPipeline)                   \
  F(vkDestroyPipelineCache)              \
  F(vkDestroyPipelineLayout)             \
  F(vkDestroyQueryPool)                  \
  F(vkDestroySemaphore)                  \
  F(vkDestroyShaderModule)               \
  F(vkDeviceWaitIdle)                    \
  F(vkEndCommandBuffer)                  \
  F(vkFreeCommandBuffers)                \
  F(vkFreeMemory)                        \
  F(vkGetBufferDeviceAddress)            \
  F(vkGetBufferMemoryRequirements)       \
  F(vkGetDeviceQueue)                    \
  F(vkGetFenceStatus)                    \
  F(vkGetPipelineCacheData)              \
  F(vkGetPipelineExecutableInternalRepresentationsKHR) \
  F(vkGetPipelineExecutablePropertiesKHR) \
  F(vkGetPipelineExecutableStatisticsKHR) \
  F(vkGetQueryPoolResults)               \
  F(vkMapMemory)                         \
  F(vkQueueSubmit)                       \
  F(vkResetCommandBuffer)                \
  F(vkResetFences)                       \
  F(vkUpdateDescriptorSets)              \
  F(vkWaitForFences)                     \
  F(vkWaitSemaphores)
// clang-format on

#define MULCIBER_POINTER(name) PFN_##name name = nullptr;
/// Functions that the instance lacks are null. Those that record debug labels are here because
/// their extension is one of instances.
struct InstanceFunctions {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
  MULCIBER_INSTANCE_FUNCTIONS(MULCIBER_POINTER)
};

/// Functions that the device lacks are null. Functions that became core later have their core name
/// here, under whichever name the device offers them.
struct DeviceFunctions {
  MULCIBER_DEVICE_FUNCTIONS(MULCIBER_POINTER)
};
#undef MULCIBER_POINTER

InstanceFunctions instance_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance);
DeviceFunctions device_functions(const InstanceFunctions& instance, VkDevice device);

/// vkGetInstanceProcAddr of this machine's Vulkan loader, which stays loaded; null without a
/// loader.
PFN_vkGetInstanceProcAddr vulkan_loader();

}  // namespace mulciber
