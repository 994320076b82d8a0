// C functions for devices.
#include "mulciber/c/device.h"

#include "capi/handles.h"
#include "capi/structures.h"
#include "mulciber/model_loader.h"

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_open_device(MulciberContext* context, const char* name,
                                    MulciberDevice** device) {
  return guarded(context, [&] {
    given_to(device, "device") = nullptr;
    *device = new MulciberDevice{open_device({.device = name ? name : ""})};
  });
}

void mulciber_destroy_device(MulciberDevice* device) { delete device; }

MulciberStatus mulciber_pipeline_cache(MulciberContext* context, MulciberDevice* device,
                                       size_t* size, void* bytes) {
  return guarded(context, [&] {
    give_bytes(pipeline_cache(*given_to(device, "device").device), size, bytes);
  });
}

uint64_t mulciber_pipelines_made(MulciberDevice* device) {
  return device ? pipelines_made(*device->device) : 0;
}

MulciberStatus mulciber_describe_device(MulciberContext* context, const MulciberDevice* device,
                                        MulciberDeviceReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberDeviceReport", [&](MulciberDeviceReport& to) {
      DeviceDescription& found = context->description;
      found = describe(*given_to(device, "device").device);
      to.software = found.software;
      to.name = found.name.c_str();
      to.driver = found.driver.c_str();
      to.memory_bytes = found.memory_bytes;
      to.queue_priority = static_cast<MulciberQueuePriority>(found.queue_priority);
      to.occupancy_priority = found.occupancy_priority;
    });
  });
}
