// C functions for devices.
#include "mulciber/c/device.h"

#include "capi/handles.h"
#include "capi/result.h"
#include "capi/structures.h"
#include "mulciber/model_loader.h"

namespace mulciber::c {
namespace {

struct ShownDevices {
  std::vector<DeviceDescription> found;
  std::vector<MulciberDeviceReport> list;
};

struct ShownSelfTest {
  SelfTest found;
  std::vector<const char*> failures;
  MulciberSelfTest test;
};

QueuePriority queue_priority(MulciberQueuePriority priority) {
  switch (priority) {
    case MULCIBER_QUEUE_PRIORITY_DEFAULT: return QueuePriority::kDefault;
    case MULCIBER_QUEUE_PRIORITY_LOW: return QueuePriority::kLow;
    case MULCIBER_QUEUE_PRIORITY_HIGH: return QueuePriority::kHigh;
    case MULCIBER_QUEUE_PRIORITY_REALTIME: return QueuePriority::kRealtime;
    default: refuse_enumerator("queue_priority", priority, "MulciberQueuePriority");
  }
}

DeviceOptions device_options(const MulciberOpenDeviceInfo* from) {
  const auto info = optional_of_any_version(from, "MulciberOpenDeviceInfo");
  DeviceOptions options = {.device = info.device ? info.device : "",
                           .limits = info.limits ? info.limits : "",
                           .validate = info.validate != 0,
                           .profile = info.profile != 0,
                           .cache_folder = info.cache_folder ? info.cache_folder : "",
                           .ignore_verdicts = info.ignore_verdicts != 0,
                           .pipeline_statistics = info.pipeline_statistics != 0,
                           .second_queue = info.second_queue != 0,
                           .queue_priority = queue_priority(info.queue_priority)};
  if (info.set_occupancy_priority) options.occupancy_priority = info.occupancy_priority;
  if (info.submission_ms != 0) options.submission_ms = info.submission_ms;
  options.hang_seconds = info.hang_seconds;
  options.debug_labels = info.debug_labels != 0;
  return info.from_environment ? options_from_environment(options) : options;
}

/// Writes a report whose texts are those of the description.
void write_report(const DeviceDescription& from, MulciberDeviceReport& to) {
  to.software = from.software;
  to.name = from.name.c_str();
  to.driver = from.driver.c_str();
  to.memory_bytes = from.memory_bytes;
  to.queue_priority = static_cast<MulciberQueuePriority>(from.queue_priority);
  to.occupancy_priority = from.occupancy_priority;
  to.kind = static_cast<MulciberDeviceKind>(from.kind);
  to.api_version = from.api_version;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_create_device(MulciberContext* context, const MulciberOpenDeviceInfo* info,
                                      MulciberDevice** device) {
  return guarded(context, [&] {
    given_to(device, "device") = nullptr;
    *device = new MulciberDevice{open_device(device_options(info))};
  });
}

void mulciber_destroy_device(MulciberDevice* device) { delete device; }

MulciberStatus mulciber_list_devices(MulciberContext* context, const MulciberOpenDeviceInfo* info,
                                     MulciberResult** result, uint32_t* count,
                                     const MulciberDeviceReport** devices) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(count, "count") = 0;
    given_to(devices, "devices") = nullptr;
    auto shown = std::make_shared<ShownDevices>();
    shown->found = list_devices(device_options(info));
    for (const DeviceDescription& found : shown->found)
      write_report(found,
                   shown->list.emplace_back(MulciberDeviceReport{sizeof(MulciberDeviceReport)}));
    *result = new MulciberResult{shown};
    *count = static_cast<uint32_t>(shown->list.size());
    *devices = shown->list.data();
  });
}

MulciberStatus mulciber_self_test(MulciberContext* context, const MulciberOpenDeviceInfo* info,
                                  double seconds, MulciberResult** result,
                                  const MulciberSelfTest** test) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(test, "test") = nullptr;
    auto shown = std::make_shared<ShownSelfTest>();
    constexpr double kSeconds = 2;
    shown->found = self_test(device_options(info), seconds != 0 ? seconds : kSeconds);
    for (const std::string& failure : shown->found.failures)
      shown->failures.push_back(failure.c_str());
    shown->test = {.size = sizeof(MulciberSelfTest),
                   .failure_count = static_cast<uint32_t>(shown->failures.size()),
                   .failures = shown->failures.data(),
                   .passed = shown->found.passed,
                   .untested = shown->found.untested};
    *result = new MulciberResult{shown};
    *test = &shown->test;
  });
}

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
      write_report(found, to);
    });
  });
}

// Deprecated names of version 0.1.

MulciberStatus mulciber_open_device(MulciberContext* context, const char* name,
                                    MulciberDevice** device) {
  MulciberOpenDeviceInfo info = {};
  info.size = sizeof(info);
  info.device = name;
  return mulciber_create_device(context, &info, device);
}
