/* Mulciber for C: devices, adopted from the application or opened. C11. */
#ifndef MULCIBER_C_DEVICE_H
#define MULCIBER_C_DEVICE_H

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

typedef struct MulciberMemoryRequest {
  VkBuffer buffer; /* not yet bound */
  VkMemoryRequirements requirements;
  MulciberMemoryUsage usage;
  VkMemoryPropertyFlags required, preferred;
  VkBool32 device_address; /* VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT is needed */
  float priority;          /* MulciberDeviceInfo::memory_priority */
} MulciberMemoryRequest;

typedef struct MulciberMemory {
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
} MulciberDeviceInfo;

/* Wraps the application's device. The VkDevice must outlive everything made from it. */
MULCIBER_API MulciberStatus mulciber_adopt_device(MulciberContext* context,
                                                  const MulciberDeviceInfo* info,
                                                  MulciberDevice** device);

/* Opens a device that the library owns. name: index, part of a name, or NULL for the best. */
MULCIBER_API MulciberStatus mulciber_open_device(MulciberContext* context, const char* name,
                                                 MulciberDevice** device);
MULCIBER_API void mulciber_destroy_device(MulciberDevice* device);

/* bytes NULL: sets *size. Otherwise writes at most *size bytes, and sets it to their number. */
MULCIBER_API MulciberStatus mulciber_pipeline_cache(MulciberContext* context,
                                                    MulciberDevice* device, size_t* size,
                                                    void* bytes);

/* Number of pipelines compiled on a device so far. */
MULCIBER_API uint64_t mulciber_pipelines_made(MulciberDevice* device);

typedef enum MulciberQueuePriority {
  MULCIBER_QUEUE_PRIORITY_DEFAULT = 0,
  MULCIBER_QUEUE_PRIORITY_LOW = 1,
  MULCIBER_QUEUE_PRIORITY_HIGH = 2,
  MULCIBER_QUEUE_PRIORITY_REALTIME = 3,
  MULCIBER_QUEUE_PRIORITY_MAX = 0x7fffffff
} MulciberQueuePriority;

typedef struct MulciberDeviceReport {
  uint32_t size;
  VkBool32 software;
  const char* name;
  const char* driver;
  uint64_t memory_bytes;                /* device-local, usable by the process now */
  MulciberQueuePriority queue_priority; /* granted; unknown for an adopted device */
  float occupancy_priority;             /* granted; 0.5 if the driver has none */
} MulciberDeviceReport;

/* The returned pointers are valid until the next call with this context. */
MULCIBER_API MulciberStatus mulciber_describe_device(MulciberContext* context,
                                                     const MulciberDevice* device,
                                                     MulciberDeviceReport* report);

#ifdef __cplusplus
}
#endif

#endif
