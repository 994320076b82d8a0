// The features and extensions that Mulciber knows of: asked of a physical device, enabled at
// vkCreateDevice, or read from what a host enabled.
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

/// Where a feature stands in a structure of a pNext chain.
struct FeaturePlace {
  VkStructureType type = VK_STRUCTURE_TYPE_MAX_ENUM;
  size_t size = 0, offset = 0;
};

struct FeatureEntry {
  bool DeviceFeatures::*feature;
  const char* name;       // as Vulkan has it
  const char* extension;  // that has it
  uint32_t core_since;    // 0: in no version of Vulkan's core
  FeaturePlace own;       // in a structure of its own ...
  FeaturePlace core;      // ... and in that of a version's features, which a host may use instead
  const char* brings;
};
const std::vector<FeatureEntry>& feature_entries();

/// A pNext chain of the structures that hold features, for vkGetPhysicalDeviceFeatures2 and
/// vkCreateDevice.
struct FeatureStructures {
  /// The structures that hold `features`, which are set to `value`.
  explicit FeatureStructures(const DeviceFeatures& features, VkBool32 value = VK_TRUE);
  FeatureStructures(const FeatureStructures&) = delete;

  VkPhysicalDeviceFeatures2 head = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};

 private:
  std::map<VkStructureType, std::vector<uint64_t>> structures_;
};

/// What a chain says, in whichever structures.
DeviceFeatures read_features(const VkPhysicalDeviceFeatures2& chain);
/// Exactly what the capabilities offer, so that a mask of limits is real; but for
/// pipeline_executables, which is for those who ask the driver about kernels.
DeviceFeatures features_of(const Capabilities& capabilities);
/// What is in both.
DeviceFeatures common_features(const DeviceFeatures& a, const DeviceFeatures& b);

/// What a device offers at an API version.
DeviceFeatures supported_features(const InstanceFunctions& vk, VkPhysicalDevice device,
                                  uint32_t api_version, const std::vector<std::string>& extensions);
/// The extensions that these features need to be enabled beside the core of a version.
std::vector<const char*> extensions_of(const DeviceFeatures& features, uint32_t api_version);
/// Without the features whose extension is needed and not among `extensions`.
DeviceFeatures with_extensions(const DeviceFeatures& features, uint32_t api_version,
                               const std::vector<std::string>& extensions);

std::vector<std::string> device_extensions(const InstanceFunctions& vk, VkPhysicalDevice device);

}  // namespace mulciber
