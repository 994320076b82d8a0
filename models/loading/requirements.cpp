// Requirements that an application asks for before it creates its device.
#include <fmt/format.h>

#include "models/adapters/adapters.h"
#include "models/families/open_model.h"
#include "models/generation/generator_options.h"
#include "mulciber/embedding.h"
#include "runtime/device.h"
#include "runtime/device_features.h"
#include "runtime/instance.h"
#include "runtime/queue_families.h"

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
  const std::optional<uint32_t> family = first_compute_family(queue_families(vk, device));
  const bool there = family.has_value();
  r.queue_family = family.value_or(0);
  r.list.push_back({Kind::kQueue, "a queue that computes", true, there,
                    there ? fmt::format("family {} is the first", r.queue_family) : "everything"});
  if (!there) r.obstacles.push_back("the device has no queue that computes");
}

// Computes requirements; capabilities: those with all available extensions and features enabled.
Requirements ask(const ApplicationPhysicalDevice& application, Capabilities* capabilities) {
  const auto instance = borrow_instance(application);
  const InstanceFunctions& vk = instance->vk;
  Requirements r;
  VkPhysicalDeviceProperties properties;
  vk.vkGetPhysicalDeviceProperties(application.physical_device, &properties);
  const uint32_t version = std::min(properties.apiVersion, application.api_version);
  const bool recent = version >= VK_API_VERSION_1_1;
  r.list.push_back({Kind::kLimit, "Vulkan 1.1", true, recent, "everything"});
  if (!recent) {
    r.obstacles.push_back("the instance or the device is of Vulkan 1.0");
    return r;
  }
  *capabilities = read_capabilities(vk, application.physical_device, application.api_version);
  const DeviceFeatures supported = supported_features(
      vk, application.physical_device, version, device_extensions(vk, application.physical_device));
  list_features(r, supported, version);
  list_queue(r, vk, application.physical_device);
  const DeviceFeatures enabled = features_of(*capabilities);
  for (const char* name : extensions_of(enabled, version)) r.extensions.emplace_back(name);
  r.structures = std::make_shared<const FeatureStructures>(enabled);
  r.features = &r.structures->head;
  return r;
}

}  // namespace

Requirements requirements(const ApplicationPhysicalDevice& application) {
  Capabilities capabilities;
  return ask(application, &capabilities);
}

Requirements requirements(const ApplicationPhysicalDevice& application, const OpenModel& model,
                          const GeneratorOptions& options) {
  Capabilities capabilities;
  Requirements r = ask(application, &capabilities);
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
  uint64_t available = capabilities.device_memory();
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

std::vector<UnplacedFeature> enable(const Requirements& requirements,
                                    VkPhysicalDeviceFeatures2* features) {
  if (!features)
    throw SettingError("enable()", "was given no chain of features",
                       "give the VkPhysicalDeviceFeatures2 that begins it");
  std::vector<UnplacedFeature> unplaced;
  if (!requirements.features) return unplaced;  // of a device that cannot be used
  for (const FeatureEntry* entry : set_features(read_features(*requirements.features), *features)) {
    unplaced.push_back({entry->name, {entry->own.structure}});
    if (entry->core.exists()) unplaced.back().structures.emplace_back(entry->core.structure);
  }
  return unplaced;
}

}  // namespace mulciber
