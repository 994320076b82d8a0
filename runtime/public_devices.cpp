// Device functions of the public interface.
#include "runtime/public_devices.h"

#include <cstdlib>
#include <filesystem>

#include "mulciber/application_device.h"
#include "runtime/pipeline.h"

namespace mulciber {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string user_cache_folder() {
  namespace fs = std::filesystem;
  if (std::string folder = environment("MULCIBER_CACHE"); !folder.empty()) return folder;
  if (const std::string folder = environment("XDG_CACHE_HOME"); !folder.empty())
    return fs::path(folder) / "mulciber";
  const std::string home = environment("HOME");
  return home.empty() ? std::string() : (fs::path(home) / ".cache" / "mulciber").string();
}

}  // namespace

DeviceOptions options_from_environment(DeviceOptions options) {
  if (options.device.empty()) options.device = environment("MULCIBER_DEVICE");
  if (const std::string limits = environment("MULCIBER_LIMITS"); !limits.empty()) {
    Capabilities any;
    apply_limits(any, limits, "MULCIBER_LIMITS");  // an error names the variable
    options.limits = options.limits.empty() ? limits : limits + "," + options.limits;
  }
  if (environment("MULCIBER_VALIDATE") == "1") options.validate = true;
  if (environment("MULCIBER_DEBUG_LABELS") == "1") options.debug_labels = true;
  if (options.cache_folder.empty()) options.cache_folder = user_cache_folder();
  return options;
}

std::shared_ptr<Device> given(std::shared_ptr<Device> device, const char* where) {
  if (!device) throw DeviceError(DeviceError::Kind::kUnavailable, where, "was given no device", "");
  return device;
}

DeviceDescription describe(const Capabilities& capabilities) {
  DeviceDescription description = {.name = capabilities.name,
                                   .driver = capabilities.driver_name,
                                   .software = capabilities.kind == DeviceKind::kSoftware,
                                   .kind = capabilities.kind,
                                   .api_version = capabilities.api_version};
  if (!capabilities.driver_info.empty()) description.driver += " " + capabilities.driver_info;
  for (const MemoryHeap& heap : capabilities.heaps) {
    if (heap.device_local) description.memory_bytes += heap.budget;
  }
  return description;
}

DeviceDescription describe(const Device& device) {
  DeviceDescription description = describe(device.capabilities());
  description.queue_priority = device.options().queue_priority;
  description.occupancy_priority = device.options().occupancy_priority;
  return description;
}

std::vector<DeviceDescription> list_devices(const DeviceOptions& options) {
  std::vector<DeviceDescription> descriptions;
  for (const Capabilities& capabilities : Device::enumerate(options))
    descriptions.push_back(describe(capabilities));
  return descriptions;
}

std::shared_ptr<Device> open_device(const DeviceOptions& options) { return Device::open(options); }

std::shared_ptr<Device> adopt_device(const ApplicationDevice& application,
                                     const DeviceOptions& options) {
  return Device::adopt(application, options);
}

std::vector<std::byte> pipeline_cache(Device& device) { return device.pipelines().driver_cache(); }

}  // namespace mulciber
