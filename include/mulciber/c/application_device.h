/* Mulciber for C: devices of the application. The rules are those of
 * mulciber/application_device.h. C11. */
#ifndef MULCIBER_C_APPLICATION_DEVICE_H
#define MULCIBER_C_APPLICATION_DEVICE_H

#include <vulkan/vulkan_core.h>

#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberPhysicalDevice {
  uint32_t size;
  VkInstance instance;
  VkPhysicalDevice physical_device;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr;
  uint32_t api_version; /* VkApplicationInfo::apiVersion: VK_API_VERSION_1_1 or newer */
} MulciberPhysicalDevice;

typedef enum MulciberMemoryUsage {
  MULCIBER_MEMORY_WEIGHTS = 0,     /* written once, read by every step */
  MULCIBER_MEMORY_ACTIVATIONS = 1, /* caches, hidden states and intermediate results */
  MULCIBER_MEMORY_STAGING = 2,     /* written by the CPU: host-visible and coherent, mapped */
  MULCIBER_MEMORY_READBACK = 3,    /* read by the CPU: host-visible and coherent, mapped */
  MULCIBER_MEMORY_MAX = 0x7fffffff
} MulciberMemoryUsage;

/* A block of memory that the library asks for. The library sets its size. */
typedef struct MulciberMemoryRequest {
  uint32_t size;
  VkBuffer buffer; /* not yet bound */
  VkMemoryRequirements requirements;
  MulciberMemoryUsage usage;
  VkMemoryPropertyFlags required, preferred;
  VkBool32 device_address; /* VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT is needed */
  float priority;          /* MulciberDeviceInfo::memory_priority */
} MulciberMemoryRequest;

/* A block of memory that the application gives. The library sets its size. */
typedef struct MulciberMemory {
  uint32_t size;
  VkDeviceMemory memory;
  VkDeviceSize offset;
  void* mapped; /* needed where host-visible memory is required */
  void* handle; /* the application's own */
} MulciberMemory;

typedef struct MulciberDeviceInfo {
  uint32_t size;
  const MulciberPhysicalDevice* physical;
  VkDevice device;
  uint32_t extension_count; /* enabled extensions */
  const char* const* extensions;
  const VkPhysicalDeviceFeatures2* features; /* enabled features; NULL: none */
  VkQueue queue;
  uint32_t queue_family;
  /* Called around every use of the queue; NULL: nobody else uses it. */
  void (*lock_queue)(void* user);
  void (*unlock_queue)(void* user);
  /* Called in place of vkQueueSubmit; NULL: vkQueueSubmit is called. */
  VkResult (*submit)(void* user, VkQueue queue, const VkSubmitInfo* submission, VkFence fence);
  /* Allocate and free blocks of 8 MiB and more; NULL: vkAllocateMemory and vkFreeMemory do.
   * */
  VkResult (*allocate)(void* user, const MulciberMemoryRequest* request, MulciberMemory* memory);
  void (*free)(void* user, const MulciberMemory* memory);
  void* user;
  uint64_t memory_budget;     /* bytes of device memory; 0: what the process may use */
  const void* pipeline_cache; /* from an earlier run; may be NULL */
  size_t pipeline_cache_size;
  uint32_t pipeline_threads; /* threads that compile pipelines; 0 or 1: the caller's only */
  const char* cache_folder;  /* for self-test verdicts and pipelines; NULL: no file is touched */
  /* Priority of allocations, up to 1; 0: Vulkan's default, 0.5. Where memoryPriority is enabled,
   * memory of lower priority is evicted first when device memory is short. */
  float memory_priority;
  float occupancy_priority; /* up to 1; 0: Vulkan's default, 0.5; see DeviceOptions */
  /* Name the dispatches of each layer for RenderDoc and other debuggers: costs CPU time in every
   * command buffer. Has no effect where VK_EXT_debug_utils is not enabled on the instance. */
  MulciberBool debug_labels;
  /* The application's, in place of one of the library's: never destroyed, not externally
   * synchronized, and given without `pipeline_cache`. VK_NULL_HANDLE: none. */
  VkPipelineCache pipeline_cache_handle;
  /* Passed to every Vulkan call on the device that creates, allocates, destroys or frees; NULL:
   * none. Copied; called from every thread that uses the device or compiles pipelines. */
  const VkAllocationCallbacks* allocation_callbacks;
} MulciberDeviceInfo;

/* Wraps the application's device. The VkDevice must outlive everything made from it. */
MULCIBER_API MulciberStatus mulciber_adopt_device(MulciberContext* context,
                                                  const MulciberDeviceInfo* info,
                                                  MulciberDevice** device);

#ifdef __cplusplus
}
#endif

#endif
