// Devices of the public interface.
#include "runtime/public_devices.h"

namespace mulciber {

DeviceSettings device_settings(const DeviceOptions& options) {
  return {.device = options.device,
          .limits = options.limits,
          .validate = options.validate,
          .profile = options.profile};
}

DeviceDescription describe(const Capabilities& capabilities) {
  DeviceDescription description = {.name = capabilities.name,
                                   .driver = capabilities.driver_name,
                                   .software = capabilities.kind == DeviceKind::kSoftware};
  if (!capabilities.driver_info.empty()) description.driver += " " + capabilities.driver_info;
  for (const MemoryHeap& heap : capabilities.heaps) {
    if (heap.device_local) description.memory_bytes += heap.budget;
  }
  return description;
}

DeviceDescription describe(const Device& device) { return describe(device.capabilities()); }

std::vector<DeviceDescription> list_devices(const DeviceOptions& options) {
  std::vector<DeviceDescription> descriptions;
  for (const Capabilities& capabilities : Device::enumerate(device_settings(options)))
    descriptions.push_back(describe(capabilities));
  return descriptions;
}

std::shared_ptr<Device> open_device(const DeviceOptions& options) {
  return Device::open(device_settings(options));
}

}  // namespace mulciber
