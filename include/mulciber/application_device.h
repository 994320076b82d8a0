// A Vulkan device that the application owns: its queue, its memory, and its enabled extensions and
// features. Needs Vulkan's headers. Errors are the types of mulciber/error.h.
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

/// A physical device of the application.
struct ApplicationPhysicalDevice {
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  /// VkApplicationInfo::apiVersion of the instance: at least VK_API_VERSION_1_1.
  uint32_t api_version = VK_API_VERSION_1_1;
};

/// The queue that Mulciber submits to, which may be the application's queue for drawing.
struct ApplicationQueue {
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t family = 0;
  /// Called around every use of the queue; empty: nobody else uses it. `unlock` must not throw.
  std::function<void()> lock = {}, unlock = {};
  /// Called in place of vkQueueSubmit, between lock and unlock, for instance to collect the
  /// submissions of a frame. It must submit before anything waits for `fence`. When it fails or
  /// throws, it must not have submitted; exceptions pass to the caller, once the queue is unlocked.
  std::function<VkResult(VkQueue queue, const VkSubmitInfo& submission, VkFence fence)> submit = {};
};

enum class MemoryUsage {
  kWeights,      // written once, read by every step
  kActivations,  // caches, hidden states and intermediate results: device-local
  kStaging,      // written by the CPU, copied from once: host-visible and coherent, mapped
  kReadback,     // written by the device, read by the CPU: host-visible and coherent, mapped
};

struct MemoryRequest {
  VkBuffer buffer = VK_NULL_HANDLE;  // the buffer that needs the memory, not yet bound
  VkMemoryRequirements requirements = {};
  MemoryUsage usage = MemoryUsage::kActivations;
  VkMemoryPropertyFlags required = 0, preferred = 0;
  bool device_address = false;  // VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT is needed
  float priority = 0.5f;        // ApplicationDevice::memory_priority
};

struct ApplicationMemory {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceSize offset = 0;
  void* mapped = nullptr;  // address of this memory; needed where `required` has HOST_VISIBLE
  void* handle = nullptr;  // the application's own, such as a VmaAllocation
};

/// Allocates and frees memory. Mulciber requests blocks of 8 MiB and more, and suballocates from
/// them. VK_SUCCESS without memory, or without a mapped address where one is needed, becomes a
/// DeviceError, and exceptions pass to the caller; memory that was given is freed.
struct ApplicationAllocator {
  std::function<VkResult(const MemoryRequest& request, ApplicationMemory* memory)> allocate = {};
  std::function<void(const ApplicationMemory& memory)> free = {};
};

/// A device of the application's, with its enabled extensions and features. Nothing else is used.
struct ApplicationDevice {
  ApplicationPhysicalDevice physical;
  VkDevice device = VK_NULL_HANDLE;
  ApplicationQueue queue;
  std::vector<std::string> enabled_extensions;
  /// The chain given to vkCreateDevice; read only during adopt_device(). Null: no features.
  const VkPhysicalDeviceFeatures2* enabled_features = nullptr;
  ApplicationAllocator allocator = {};
  /// Limit of device memory, bytes; 0: what the process may use.
  uint64_t memory_budget = 0;
  /// Priority of allocations, 0 to 1, where memoryPriority is enabled: when device memory is
  /// oversubscribed, memory of lower priority is evicted first. Vulkan's default is 0.5.
  float memory_priority = 0.5f;
  /// Pipelines of an earlier run, from pipeline_cache(); may be empty, and is where
  /// `pipeline_cache_handle` is given.
  std::vector<std::byte> pipeline_cache = {};
  /// Threads that compile pipelines, while the call that needs them waits; 1: only the caller's
  /// thread.
  uint32_t pipeline_threads = 1;
  /// Name the dispatches of each layer in command buffers, see DeviceOptions::debug_labels.
  bool debug_labels = false;
  /// The application's pipeline cache, which pipelines are compiled with; null: one of the
  /// library's. It is never destroyed, must outlive the device, and must not be externally
  /// synchronized. The application keeps its content for later runs: the library writes no file of
  /// pipelines then.
  VkPipelineCache pipeline_cache_handle = VK_NULL_HANDLE;
  /// Passed to every Vulkan call on the device that creates, allocates, destroys or frees; null:
  /// none. Copied by adopt_device(); called from every thread that uses the device or compiles
  /// pipelines, until the device is destroyed.
  const VkAllocationCallbacks* allocation_callbacks = nullptr;
};

/// A two-dimensional image of the application's that results are copied into, made with
/// VK_IMAGE_USAGE_TRANSFER_DST_BIT. Formats: VK_FORMAT_R32_SFLOAT, which holds values unchanged;
/// R16_SFLOAT; R8_UNORM and R16_UNORM; R8G8B8A8_UNORM and B8G8R8A8_UNORM, which hold values as grey
/// with an alpha of 1. UNORM formats clamp values to 0 and 1 and round to the nearest step, halves
/// up. Mulciber records the layout transitions and barriers. Texels outside of the copy keep their
/// contents where `layout` is not VK_IMAGE_LAYOUT_UNDEFINED.
struct ApplicationImage {
  VkImage image = VK_NULL_HANDLE;
  VkFormat format = VK_FORMAT_UNDEFINED;
  VkExtent2D extent = {};  // in texels, of the mip level
  uint32_t mip_level = 0, array_layer = 0;
  VkOffset2D offset = {};  // texel of the first value; rows go down from there
  /// The layout before the copy, and after it.
  VkImageLayout layout = VK_IMAGE_LAYOUT_UNDEFINED;
  VkImageLayout final_layout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL;
  /// Stages and accesses of the image's uses before and after the copy: stages that the queue
  /// family supports.
  VkPipelineStageFlags stages = VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT;
  VkAccessFlags accesses = VK_ACCESS_SHADER_READ_BIT;
  /// The queue family that owns the image before and after the copy, where the image is exclusive
  /// and that family is not ApplicationQueue::family. The copy then acquires and releases the
  /// image; the application records the other half of each ownership transfer, with the same
  /// layouts, and synchronizes the two queues by semaphores. With VK_IMAGE_LAYOUT_UNDEFINED nothing
  /// is acquired.
  uint32_t queue_family = VK_QUEUE_FAMILY_IGNORED;
};

/// A range of a buffer of the application's, made with VK_BUFFER_USAGE_TRANSFER_DST_BIT.
struct ApplicationBuffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize offset = 0, size = 0;  // bytes; offset: a multiple of 4
  /// Stages and accesses of the buffer's uses before and after the copy.
  VkPipelineStageFlags stages = VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT;
  VkAccessFlags accesses = VK_ACCESS_SHADER_READ_BIT;
  uint32_t queue_family = VK_QUEUE_FAMILY_IGNORED;  // see ApplicationImage
};

/// Wraps a device of the application's. It is not destroyed, and must outlive the returned object
/// and everything made with it. options: `device`, `validate` and `second_queue` are ignored;
/// without a cache_folder no file is read or written. Throws DeviceError naming a required feature
/// that is missing, or a queue family that does not exist or cannot compute.
MULCIBER_API std::shared_ptr<Device> adopt_device(const ApplicationDevice& application,
                                                  const DeviceOptions& options = {});

/// Returns the content of the pipeline cache, for ApplicationDevice::pipeline_cache of a later run.
MULCIBER_API std::vector<std::byte> pipeline_cache(Device& device);

// Deprecated names of version 0.1.
using HostPhysicalDevice [[deprecated("use ApplicationPhysicalDevice")]] =
    ApplicationPhysicalDevice;
using HostQueue [[deprecated("use ApplicationQueue")]] = ApplicationQueue;
using HostMemory [[deprecated("use ApplicationMemory")]] = ApplicationMemory;
using HostAllocator [[deprecated("use ApplicationAllocator")]] = ApplicationAllocator;
using HostDevice [[deprecated("use ApplicationDevice")]] = ApplicationDevice;
using HostImage [[deprecated("use ApplicationImage")]] = ApplicationImage;
using HostBuffer [[deprecated("use ApplicationBuffer")]] = ApplicationBuffer;

}  // namespace mulciber
