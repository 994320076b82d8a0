/* Mulciber for C: devices. mulciber/c/application_device.h adopts one of the application. C11. */
#ifndef MULCIBER_C_DEVICE_H
#define MULCIBER_C_DEVICE_H

#include "mulciber/c/context.h"
#include "mulciber/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum MulciberQueuePriority {
  MULCIBER_QUEUE_PRIORITY_DEFAULT = 0,
  MULCIBER_QUEUE_PRIORITY_LOW = 1,
  MULCIBER_QUEUE_PRIORITY_HIGH = 2,
  MULCIBER_QUEUE_PRIORITY_REALTIME = 3,
  MULCIBER_QUEUE_PRIORITY_MAX = 0x7fffffff
} MulciberQueuePriority;

typedef enum MulciberDeviceKind {
  MULCIBER_DEVICE_DISCRETE = 0,
  MULCIBER_DEVICE_INTEGRATED = 1,
  MULCIBER_DEVICE_VIRTUAL = 2,
  MULCIBER_DEVICE_SOFTWARE = 3,
  MULCIBER_DEVICE_KIND_MAX = 0x7fffffff
} MulciberDeviceKind;

typedef struct MulciberDeviceReport {
  uint32_t size;
  MulciberBool software;
  const char* name;
  const char* driver;
  uint64_t memory_bytes;                /* device-local, usable by the process now */
  MulciberQueuePriority queue_priority; /* granted; unknown for an adopted device */
  float occupancy_priority;             /* granted; 0.5 if the driver has none */
  MulciberDeviceKind kind;
  uint32_t api_version; /* of Vulkan in use, packed as VK_MAKE_API_VERSION does */
} MulciberDeviceReport;

/* ---- Devices of the library ---- */

/* Which device to open, and how. mulciber/device.h explains the options at DeviceOptions. */
typedef struct MulciberOpenDeviceInfo {
  uint32_t size;
  /* Complete the options from the environment of this process, as options_from_environment() does;
   * otherwise none of it is read. */
  MulciberBool from_environment;
  const char* device;       /* index, part of a name; NULL: the best, hardware before software */
  const char* limits;       /* capabilities to leave unused: "no-fp16,shared=16384"; NULL: none */
  const char* cache_folder; /* for pipelines and self-test verdicts; NULL: nothing is stored */
  MulciberBool validate;    /* Khronos validation layer */
  MulciberBool profile;     /* time every kernel */
  MulciberBool ignore_verdicts; /* also use kernels that failed their self-test */
  MulciberBool pipeline_statistics;
  MulciberBool second_queue;
  MulciberQueuePriority queue_priority;
  MulciberBool set_occupancy_priority; /* use occupancy_priority; otherwise Vulkan's default, 0.5 */
  float occupancy_priority;            /* 0 to 1 */
  double submission_ms;                /* longest expected duration of a submission; 0: 100 */
  double hang_seconds;       /* a longer submission counts as hung; 0: the default of its kind */
  MulciberBool debug_labels; /* name dispatches by layer, for debuggers (VK_EXT_debug_utils) */
} MulciberOpenDeviceInfo;

/* Opens a device that the library owns. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_create_device(MulciberContext* context,
                                                   const MulciberOpenDeviceInfo* info,
                                                   MulciberDevice** device);

/* Destroys an opened device, or gives an adopted one back. */
MULCIBER_API void mulciber_destroy_device(MulciberDevice* device);

/* Lists the devices of this machine, best first: MulciberOpenDeviceInfo::device takes an index into
 * the list, which is stepped through by MulciberDeviceReport::size. Priorities are those of devices
 * that are open. info: may be NULL; which device it names does not matter. */
MULCIBER_API MulciberStatus mulciber_list_devices(MulciberContext* context,
                                                  const MulciberOpenDeviceInfo* info,
                                                  MulciberResult** result, uint32_t* count,
                                                  const MulciberDeviceReport** devices);

typedef struct MulciberSelfTest {
  uint32_t size;
  uint32_t failure_count;
  const char* const* failures; /* "kernel: what went wrong" */
  uint64_t passed;             /* kernels that this call tested and found correct */
  uint64_t untested;           /* kernels left for the next call, because time ran out */
} MulciberSelfTest;

/* Tests the kernels that the device may use and that were not yet tested on this driver version,
 * for about `seconds`; 0: 2. Devices that are opened afterwards with MulciberOpenDeviceInfo's
 * cache_folder use no kernel that failed. Does nothing without such a folder. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_self_test(MulciberContext* context,
                                               const MulciberOpenDeviceInfo* info, double seconds,
                                               MulciberResult** result,
                                               const MulciberSelfTest** test);

/* ---- Devices of both kinds ---- */

/* bytes NULL: sets *size. Otherwise writes at most *size bytes, and sets it to their number. */
MULCIBER_API MulciberStatus mulciber_pipeline_cache(MulciberContext* context,
                                                    MulciberDevice* device, size_t* size,
                                                    void* bytes);

/* Number of pipelines compiled on a device so far. */
MULCIBER_API uint64_t mulciber_pipelines_made(MulciberDevice* device);

/* The returned pointers are valid until the next call with this context. */
MULCIBER_API MulciberStatus mulciber_describe_device(MulciberContext* context,
                                                     const MulciberDevice* device,
                                                     MulciberDeviceReport* report);

/* ---- Deprecated names of version 0.1 ---- */

MULCIBER_DEPRECATED("use mulciber_create_device")
MULCIBER_API MulciberStatus mulciber_open_device(MulciberContext* context, const char* name,
                                                 MulciberDevice** device);

#ifdef __cplusplus
}
#endif

#endif
