// A Vulkan device that belongs to someone else: its queue, its memory, and what of it is enabled.
// Needs Vulkan's headers. Errors are the types of mulciber/error.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <vulkan/vulkan_core.h>

#include "mulciber/device.h"

namespace mulciber {

/// A physical device that the host may use.
struct HostPhysicalDevice {
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  /// VkApplicationInfo::apiVersion of the instance: at least VK_API_VERSION_1_1.
  uint32_t api_version = VK_API_VERSION_1_1;
};

/// The queue that Mulciber submits to, which may be the host's own for drawing.
struct HostQueue {
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t family = 0;
  /// Called around every use of the queue; empty: nobody else uses it.
  std::function<void()> lock = {}, unlock = {};
  /// Called in place of vkQueueSubmit, between lock and unlock, for instance by a host that
  /// collects what a frame submits. Must submit before anything that waits for `fence`.
  std::function<VkResult(VkQueue queue, const VkSubmitInfo& submission, VkFence fence)> submit = {};
};

enum class MemoryUsage {
  kWeights,      // written once, read by every step
  kActivations,  // caches, states and intermediate results: device-local
  kStaging,      // written by the host, copied from once: host-visible and coherent, mapped
  kReadback,     // written by the device, read by the host: host-visible and coherent, mapped
};

struct MemoryRequest {
  VkBuffer buffer = VK_NULL_HANDLE;  // that the memory is for, not yet bound
  VkMemoryRequirements requirements = {};
  MemoryUsage usage = MemoryUsage::kActivations;
  VkMemoryPropertyFlags required = 0, preferred = 0;
  bool device_address = false;  // VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT is needed
  float priority = 0.5f;        // HostDevice::memory_priority
};

struct HostMemory {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize offset = 0;
  void* mapped = nullptr;  // of this memory; needed where `required` has HOST_VISIBLE
  void* handle = nullptr;  // the host's own, as VmaAllocation
};

/// Gives and takes memory. Blocks of 8 MiB and more are asked for; Mulciber divides them.
struct HostAllocator {
  std::function<VkResult(const MemoryRequest& request, HostMemory* memory)> allocate = {};
  std::function<void(const HostMemory& memory)> free = {};
};

/// A device of the host's, and what of it was enabled. What was not enabled is not used.
struct HostDevice {
  HostPhysicalDevice physical;
  VkDevice device = VK_NULL_HANDLE;
  HostQueue queue;
  std::vector<std::string> enabled_extensions;
  /// The chain given to vkCreateDevice: looked at during adopt_device() alone. Null: no features.
  const VkPhysicalDeviceFeatures2* enabled_features = nullptr;
  HostAllocator allocator = {};
  /// Most bytes of device memory; 0: what the process may use.
  uint64_t memory_budget = 0;
  /// From 0 to 1: where memoryPriority is enabled, memory of lower priority leaves the device first
  /// when all programs together want more than there is. 0.5 is Vulkan's own.
  float memory_priority = 0.5f;
  /// Pipelines of an earlier run, as pipeline_cache() gave them; may be empty.
  std::vector<std::byte> pipeline_cache = {};
  /// Threads that compile pipelines together, while the call that needs them waits: 1 is the
  /// caller's own alone.
  uint32_t pipeline_threads = 1;
};

/// An image of the host's, two-dimensional, that something is copied into: made with
/// VK_IMAGE_USAGE_TRANSFER_DST_BIT. Formats: VK_FORMAT_R32_SFLOAT, which takes numbers as they are;
/// R16_SFLOAT; R8_UNORM and R16_UNORM; R8G8B8A8_UNORM and B8G8R8A8_UNORM, which get them as greys
/// with an alpha of 1. Of the UNORM formats the nearest step stands for a number, a half goes up,
/// and what lies beyond 0 and 1 is cut. Mulciber makes the transitions between layouts and the
/// barriers; texels outside of what is copied stay where `layout` is not VK_IMAGE_LAYOUT_UNDEFINED.
struct HostImage {
  VkImage image = VK_NULL_HANDLE;
  VkFormat format = VK_FORMAT_UNDEFINED;
  VkExtent2D extent = {};  // in texels, of the mip level
  uint32_t mip_level = 0, array_layer = 0;
  VkOffset2D offset = {};  // where the first number goes; across and down from there
  /// The layout that it stands in, and is left in.
  VkImageLayout layout = VK_IMAGE_LAYOUT_UNDEFINED;
  VkImageLayout final_layout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL;
  /// What uses it, before and afterwards: stages that the queue family has.
  VkPipelineStageFlags stages = VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT;
  VkAccessFlags accesses = VK_ACCESS_SHADER_READ_BIT;
  /// The family that owns it, before and afterwards, where it is exclusive and another family than
  /// was lent. The copy then acquires and releases it; the host records the other half of each
  /// transfer, with the same layouts, and parts the two queues by semaphores. With
  /// VK_IMAGE_LAYOUT_UNDEFINED nothing is acquired.
  uint32_t queue_family = VK_QUEUE_FAMILY_IGNORED;
};

/// A range of a buffer of the host's, made with VK_BUFFER_USAGE_TRANSFER_DST_BIT.
struct HostBuffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0, size = 0;  // bytes; the offset in fours
  /// What uses it, before and afterwards.
  VkPipelineStageFlags stages = VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT;
  VkAccessFlags accesses = VK_ACCESS_SHADER_READ_BIT;
  uint32_t queue_family = VK_QUEUE_FAMILY_IGNORED;  // as HostImage
};

/// A device that is borrowed: it is not destroyed, and must outlive what is returned and everything
/// made with it. Of `options`, `device`, `validate` and `second_queue` have no meaning here;
/// without a cache_folder no file is read or written. Throws DeviceError where something required
/// is missing, naming it.
MULCIBER_API std::shared_ptr<Device> adopt_device(const HostDevice& host,
                                                  const DeviceOptions& options = {});

/// The driver's pipeline cache, for HostDevice::pipeline_cache of a later run.
MULCIBER_API std::vector<std::byte> pipeline_cache(Device& device);

}  // namespace mulciber
