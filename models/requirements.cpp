// What a host is told before it creates its device.
#include <fmt/format.h>

#include "models/generator_options.h"
#include "models/open_model.h"
#include "mulciber/embedding.h"
#include "runtime/device.h"
#include "runtime/device_features.h"

namespace mulciber {
namespace {

using Kind = Requirement::Kind;

void list_features(Requirements& r, const DeviceFeatures& supported, uint32_t version) {
  for (const FeatureEntry& entry : feature_entries()) {
    const bool there = supported.*entry.feature;
    r.list.push_back({Kind::kFeature, entry.name, false, there, entry.brings});
    if (entry.core_since != 0 && version >= entry.core_since) continue;
    const auto listed = [&](const Requirement& other) { return other.name == entry.extension; };
    if (std::ranges::none_of(r.list, listed))
      r.list.push_back({Kind::kExtension, entry.extension, false, there,
                        fmt::format("has {}: {}", entry.name, entry.brings)});
  }
}

void list_queue(Requirements& r, const InstanceFunctions& vk, VkPhysicalDevice device) {
  uint32_t count = 0;
  vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  const auto family = std::ranges::find_if(families, [](const VkQueueFamilyProperties& f) {
    return (f.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
  });
  const bool there = family != families.end();
  r.queue_family = there ? static_cast<uint32_t>(family - families.begin()) : 0;
  r.list.push_back({Kind::kQueue, "a queue that computes", true, there,
                    there ? fmt::format("family {} is the first", r.queue_family) : "everything"});
  if (!there) r.obstacles.push_back("the device has no queue that computes");
}

// What the device could be with everything enabled that it has.
Requirements ask(const HostPhysicalDevice& host, Capabilities* capabilities) {
  const InstanceFunctions vk = instance_functions(host.get_instance_proc_addr, host.instance);
  Requirements r;
  VkPhysicalDeviceProperties properties;
  vk.vkGetPhysicalDeviceProperties(host.physical_device, &properties);
  const uint32_t version = std::min(properties.apiVersion, host.api_version);
  const bool recent = version >= VK_API_VERSION_1_1;
  r.list.push_back({Kind::kLimit, "Vulkan 1.1", true, recent, "everything"});
  if (!recent) {
    r.obstacles.push_back("the instance or the device is of Vulkan 1.0");
    return r;
  }
  *capabilities = read_capabilities(vk, host.physical_device, host.api_version);
  DeviceFeatures supported = supported_features(vk, host.physical_device, version,
                                                device_extensions(vk, host.physical_device));
  list_features(r, supported, version);
  list_queue(r, vk, host.physical_device);
  // For whoever asks the driver about kernels, and nothing without cooperative matrices.
  supported.pipeline_executables = false;
  if (!capabilities->has(kCooperativeMatrix)) {
    supported.memory_model = supported.memory_model_device_scope = false;
    supported.flexible_matrices = false;
  }
  for (const char* name : extensions_of(supported, version)) r.extensions.emplace_back(name);
  r.structures = std::make_shared<const FeatureStructures>(supported);
  r.features = &r.structures->head;
  return r;
}

void require_handles(const HostPhysicalDevice& host) {
  if (host.instance && host.physical_device && host.get_instance_proc_addr) return;
  throw DeviceError(DeviceError::Kind::kUnavailable, "HostPhysicalDevice",
                    "lacks the instance, the physical device or get_instance_proc_addr",
                    "fill all three");
}

}  // namespace

Requirements requirements(const HostPhysicalDevice& host) {
  require_handles(host);
  Capabilities capabilities;
  return ask(host, &capabilities);
}

Requirements requirements(const HostPhysicalDevice& host, const OpenModel& model,
                          const GeneratorOptions& options) {
  require_handles(host);
  Capabilities capabilities;
  Requirements r = ask(host, &capabilities);
  if (!r.fits()) return r;
  apply_quirks(capabilities);
  const Architecture& architecture = model.architecture();
  try {
    r.memory =
        architecture.predict(capabilities, model_options(options, architecture.extents().context));
  } catch (const Error& error) {
    r.obstacles.push_back(error.what());
    return r;
  }
  uint64_t available = 0;
  for (const MemoryHeap& heap : capabilities.heaps) {
    if (heap.device_local) available = std::max(available, std::min(heap.budget, heap.size));
  }
  if (options.load.memory_limit > 0) available = std::min(available, options.load.memory_limit);
  const uint64_t needed = r.memory.weight_bytes + r.memory.context_bytes;
  const bool enough = needed <= available;
  r.list.push_back({Kind::kMemory, fmt::format("{} bytes of device memory", needed), true, enough,
                    fmt::format("weights {}, keys and values {}, the rest activations",
                                r.memory.weight_bytes, r.memory.key_value_bytes)});
  if (!enough)
    r.obstacles.push_back(fmt::format("the model takes {} bytes of device memory, {} are available",
                                      needed, available));
  return r;
}

}  // namespace mulciber
