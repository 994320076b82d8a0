// C functions for devices.
#include "mulciber/c/device.h"

#include <algorithm>

#include "capi/handles.h"
#include "capi/structures.h"
#include "mulciber/model_loader.h"

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_adopt_device(MulciberContext* context, const MulciberDeviceInfo* from,
                                     MulciberDevice** device) {
  return guarded(context, [&] {
    given_to(device, "device") = nullptr;
    const auto info = of_any_version(from, "MulciberDeviceInfo");
    const auto* cache = static_cast<const std::byte*>(info.pipeline_cache);
    ApplicationDevice application;
    application.physical = application_physical(info.physical);
    application.device = info.device;
    application.queue = application_queue(info);
    for (uint32_t i = 0; i < info.extension_count; ++i) {
      const char* name = element_of(info.extensions, i, "extensions");
      application.enabled_extensions.emplace_back(&given_to(name, "extensions"));
    }
    application.enabled_features = info.features;
    application.allocator = application_allocator(info);
    application.memory_budget = info.memory_budget;
    if (info.memory_priority != 0) application.memory_priority = info.memory_priority;
    if (cache) application.pipeline_cache.assign(cache, cache + info.pipeline_cache_size);
    application.pipeline_threads = std::max(info.pipeline_threads, 1u);
    DeviceOptions options = {.cache_folder = info.cache_folder ? info.cache_folder : ""};
    if (info.occupancy_priority != 0) options.occupancy_priority = info.occupancy_priority;
    *device = new MulciberDevice{adopt_device(application, options)};
  });
}

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
