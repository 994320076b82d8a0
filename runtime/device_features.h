// The features and extensions that Mulciber knows: those that a physical device supports, that
// vkCreateDevice enables, or that an application has enabled.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "runtime/vulkan.h"

namespace mulciber {

struct Capabilities;  // runtime/capabilities.h

struct DeviceFeatures {
  bool storage16 = false;
  bool storage8 = false;
  bool float16 = false;
  bool int8 = false;
  bool buffer_address = false;
  bool timeline_semaphore = false;
  bool subgroup_size_control = false;
  bool full_subgroups = false;
  bool integer_dot = false;
  bool cooperative_matrix = false;
  bool flexible_matrices = false;
  bool workgroup_matrices = false;
  bool matrix_tensors = false;
  bool matrix_blocks = false;
  bool matrix_elements = false;
  bool bf16 = false;
  bool bf16_matrices = false;
  bool memory_model = false;
  bool memory_model_device_scope = false;
  bool memory_priority = false;
  bool occupancy_priority = false;
  bool pipeline_executables = false;
};

/// The place of a feature in a structure of a pNext chain.
struct FeaturePlace {
  VkStructureType type = VK_STRUCTURE_TYPE_MAX_ENUM;
  size_t size = 0, offset = 0;
  const char* structure = "";  // Vulkan's name

  bool exists() const { return size > 0; }
};

struct FeatureEntry {
  bool DeviceFeatures::*feature;
  const char* name;       // Vulkan's name
  const char* extension;  // the extension that has the feature
  uint32_t core_since;    // 0: in no version of Vulkan's core
  FeaturePlace own;       // place in the feature's own structure ...
  FeaturePlace core;      // ... and in a Vulkan version's, which an application may use instead
  const char* brings;
};
const std::vector<FeatureEntry>& feature_entries();

/// A pNext chain of the structures that hold features, for vkGetPhysicalDeviceFeatures2 and
/// vkCreateDevice.
struct FeatureStructures {
  /// Makes the structures that hold `features`, which are set to `value`.
  explicit FeatureStructures(const DeviceFeatures& features, VkBool32 value = VK_TRUE);
  FeatureStructures(const FeatureStructures&) = delete;

  VkPhysicalDeviceFeatures2 head = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};

 private:
  std::map<VkStructureType, std::vector<uint64_t>> structures_;
};

/// The features that a chain enables, in any of its structures.
DeviceFeatures read_features(const VkPhysicalDeviceFeatures2& chain);
/// Sets these features in a chain, in every structure that holds them. Returns those for which the
/// chain has no structure.
std::vector<const FeatureEntry*> set_features(const DeviceFeatures& features,
                                              VkPhysicalDeviceFeatures2& chain);
/// Exactly the features that the capabilities offer, so that a mask of limits holds on the device
/// too. The exception is pipeline_executables, which is asked for only to read the driver's
/// statistics of kernels.
DeviceFeatures features_of(const Capabilities& capabilities);
/// The features that are in both sets.
DeviceFeatures common_features(const DeviceFeatures& a, const DeviceFeatures& b);

/// The features that a device offers at an API version.
DeviceFeatures supported_features(const InstanceFunctions& vk, VkPhysicalDevice device,
                                  uint32_t api_version, const std::vector<std::string>& extensions);
/// The extensions that must be enabled for these features beside the core of a version.
std::vector<const char*> extensions_of(const DeviceFeatures& features, uint32_t api_version);
/// Returns `features` without those that need an extension outside `extensions`.
DeviceFeatures with_extensions(const DeviceFeatures& features, uint32_t api_version,
                               const std::vector<std::string>& extensions);

std::vector<std::string> device_extensions(const InstanceFunctions& vk, VkPhysicalDevice device);

}  // namespace mulciber
