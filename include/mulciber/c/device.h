/* Mulciber for C: devices. mulciber/c/application_device.h adopts one of the application. C11. */
#ifndef MULCIBER_C_DEVICE_H
#define MULCIBER_C_DEVICE_H

#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

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
  MulciberBool software;
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
