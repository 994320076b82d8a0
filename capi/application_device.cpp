// C functions for devices of the application.
#include "mulciber/c/application_device.h"

#include <algorithm>

#include "capi/handles.h"
#include "capi/structures.h"

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
    application.debug_labels = info.debug_labels != 0;
    application.pipeline_cache_handle = info.pipeline_cache_handle;
    application.allocation_callbacks = info.allocation_callbacks;
    DeviceOptions options = {.cache_folder = info.cache_folder ? info.cache_folder : ""};
    if (info.occupancy_priority != 0) options.occupancy_priority = info.occupancy_priority;
    *device = new MulciberDevice{adopt_device(application, options)};
  });
}
