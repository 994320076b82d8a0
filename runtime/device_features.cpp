#include "runtime/device_features.h"

#include <algorithm>
#include <cstring>

#include "runtime/capabilities.h"

namespace mulciber {
namespace {

#define MULCIBER_PLACE(type, structure, member) \
  FeaturePlace { type, sizeof(structure), offsetof(structure, member), #structure }

VkBaseOutStructure* next_of(const void* structure) {
  return static_cast<const VkBaseOutStructure*>(structure)->pNext;
}

VkBool32* place_in(void* structure, const FeaturePlace& place) {
  return reinterpret_cast<VkBool32*>(static_cast<std::byte*>(structure) + place.offset);
}

bool among(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool needs_extension(const FeatureEntry& entry, uint32_t api_version) {
  return entry.core_since == 0 || api_version < entry.core_since;
}

}  // namespace

const std::vector<FeatureEntry>& feature_entries() {
  using F = DeviceFeatures;
  static const std::vector<FeatureEntry> kEntries = {
      {&F::storage16, "storageBuffer16BitAccess", VK_KHR_16BIT_STORAGE_EXTENSION_NAME,
       VK_API_VERSION_1_1,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
                      VkPhysicalDevice16BitStorageFeatures, storageBuffer16BitAccess),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                      VkPhysicalDeviceVulkan11Features, storageBuffer16BitAccess),
       "weights and activations in 16 bits"},
      {&F::storage8, "storageBuffer8BitAccess", VK_KHR_8BIT_STORAGE_EXTENSION_NAME,
       VK_API_VERSION_1_2,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
                      VkPhysicalDevice8BitStorageFeatures, storageBuffer8BitAccess),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                      VkPhysicalDeviceVulkan12Features, storageBuffer8BitAccess),
       "faster reading of weights in blocks"},
      {&F::float16, "shaderFloat16", VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_API_VERSION_1_2,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
                      VkPhysicalDeviceShaderFloat16Int8Features, shaderFloat16),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                      VkPhysicalDeviceVulkan12Features, shaderFloat16),
       "arithmetic in 16 bits"},
      {&F::int8, "shaderInt8", VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, VK_API_VERSION_1_2,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
                      VkPhysicalDeviceShaderFloat16Int8Features, shaderInt8),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                      VkPhysicalDeviceVulkan12Features, shaderInt8),
       "products of 8-bit integers on matrix units"},
      {&F::buffer_address, "bufferDeviceAddress", VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME,
       VK_API_VERSION_1_2,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
                      VkPhysicalDeviceBufferDeviceAddressFeatures, bufferDeviceAddress),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                      VkPhysicalDeviceVulkan12Features, bufferDeviceAddress),
       "tensors above the storage buffer range; faster kernels on some drivers"},
      {&F::timeline_semaphore, "timelineSemaphore", VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME,
       VK_API_VERSION_1_2,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
                      VkPhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                      VkPhysicalDeviceVulkan12Features, timelineSemaphore),
       "a semaphore's value as the end of a slice of work; without it fences"},
      {&F::subgroup_size_control, "subgroupSizeControl",
       VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, VK_API_VERSION_1_3,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
                      VkPhysicalDeviceSubgroupSizeControlFeatures, subgroupSizeControl),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                      VkPhysicalDeviceVulkan13Features, subgroupSizeControl),
       "subgroups of the size that a kernel was made for"},
      {&F::full_subgroups, "computeFullSubgroups", VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
       VK_API_VERSION_1_3,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
                      VkPhysicalDeviceSubgroupSizeControlFeatures, computeFullSubgroups),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                      VkPhysicalDeviceVulkan13Features, computeFullSubgroups),
       "kernels whose subgroups deal out work by lane"},
      {&F::integer_dot, "shaderIntegerDotProduct", VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
       VK_API_VERSION_1_3,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
                      VkPhysicalDeviceShaderIntegerDotProductFeatures, shaderIntegerDotProduct),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                      VkPhysicalDeviceVulkan13Features, shaderIntegerDotProduct),
       "products of weights in blocks with activations in 8 bits"},
      {&F::cooperative_matrix,
       "cooperativeMatrix",
       VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
                      VkPhysicalDeviceCooperativeMatrixFeaturesKHR, cooperativeMatrix),
       {},
       "products and attention on matrix units"},
      {&F::flexible_matrices,
       "cooperativeMatrixFlexibleDimensions",
       VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
                      VkPhysicalDeviceCooperativeMatrix2FeaturesNV,
                      cooperativeMatrixFlexibleDimensions),
       {},
       "matrix units that multiply matrices of more sizes than the driver lists"},
      {&F::workgroup_matrices,
       "cooperativeMatrixWorkgroupScope",
       VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
                      VkPhysicalDeviceCooperativeMatrix2FeaturesNV,
                      cooperativeMatrixWorkgroupScope),
       {},
       "products by tiles that a whole workgroup holds, which the driver brings; with the next "
       "three"},
      {&F::matrix_tensors,
       "cooperativeMatrixTensorAddressing",
       VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
                      VkPhysicalDeviceCooperativeMatrix2FeaturesNV,
                      cooperativeMatrixTensorAddressing),
       {},
       "their edges"},
      {&F::matrix_blocks,
       "cooperativeMatrixBlockLoads",
       VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
                      VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixBlockLoads),
       {},
       "weights in blocks, decoded as they are loaded"},
      {&F::matrix_elements,
       "cooperativeMatrixPerElementOperations",
       VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
                      VkPhysicalDeviceCooperativeMatrix2FeaturesNV,
                      cooperativeMatrixPerElementOperations),
       {},
       "their bias and activation"},
      {&F::bf16,
       "shaderBFloat16Type",
       VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
                      VkPhysicalDeviceShaderBfloat16FeaturesKHR, shaderBFloat16Type),
       {},
       "numbers in bf16; with the next one"},
      {&F::bf16_matrices,
       "shaderBFloat16CooperativeMatrix",
       VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR,
                      VkPhysicalDeviceShaderBfloat16FeaturesKHR, shaderBFloat16CooperativeMatrix),
       {},
       "products of weights in bf16 on matrix units, in the range of f32"},
      {&F::memory_model, "vulkanMemoryModel", VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
       VK_API_VERSION_1_2,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
                      VkPhysicalDeviceVulkanMemoryModelFeatures, vulkanMemoryModel),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                      VkPhysicalDeviceVulkan12Features, vulkanMemoryModel),
       "what kernels on matrix units need beside them"},
      {&F::memory_model_device_scope, "vulkanMemoryModelDeviceScope",
       VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, VK_API_VERSION_1_2,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES,
                      VkPhysicalDeviceVulkanMemoryModelFeatures, vulkanMemoryModelDeviceScope),
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                      VkPhysicalDeviceVulkan12Features, vulkanMemoryModelDeviceScope),
       "what all atomic operations need once vulkanMemoryModel is enabled"},
      {&F::memory_priority,
       "memoryPriority",
       VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT,
                      VkPhysicalDeviceMemoryPriorityFeaturesEXT, memoryPriority),
       {},
       "a word on whose memory leaves the device first when it is short "
       "(ApplicationDevice::memory_priority)"},
      {&F::occupancy_priority,
       "computeOccupancyPriority",
       VK_NV_COMPUTE_OCCUPANCY_PRIORITY_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_OCCUPANCY_PRIORITY_FEATURES_NV,
                      VkPhysicalDeviceComputeOccupancyPriorityFeaturesNV, computeOccupancyPriority),
       {},
       "a word on how much of the GPU a network takes beside drawing "
       "(DeviceOptions::occupancy_priority)"},
      {&F::pipeline_executables,
       "pipelineExecutableInfo",
       VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME,
       0,
       MULCIBER_PLACE(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
                      VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR,
                      pipelineExecutableInfo),
       {},
       "what the driver says of compiled kernels (DeviceOptions::pipeline_statistics)"},
  };
  return kEntries;
}

FeatureStructures::FeatureStructures(const DeviceFeatures& features, VkBool32 value) {
  for (const FeatureEntry& entry : feature_entries()) {
    if (!(features.*entry.feature)) continue;
    auto& words = structures_[entry.own.type];
    if (words.empty()) {
      words.resize((entry.own.size + 7) / 8);
      auto* structure = reinterpret_cast<VkBaseOutStructure*>(words.data());
      structure->sType = entry.own.type;
      structure->pNext = static_cast<VkBaseOutStructure*>(head.pNext);
      head.pNext = structure;
    }
    *place_in(words.data(), entry.own) = value;
  }
}

DeviceFeatures read_features(const VkPhysicalDeviceFeatures2& chain) {
  DeviceFeatures features;
  for (VkBaseOutStructure* at = next_of(&chain); at; at = next_of(at)) {
    for (const FeatureEntry& entry : feature_entries()) {
      for (const FeaturePlace& place : {entry.own, entry.core}) {
        if (place.exists() && place.type == at->sType && *place_in(at, place))
          features.*entry.feature = true;
      }
    }
  }
  return features;
}

std::vector<const FeatureEntry*> set_features(const DeviceFeatures& features,
                                              VkPhysicalDeviceFeatures2& chain) {
  std::vector<const FeatureEntry*> unplaced;
  for (const FeatureEntry& entry : feature_entries()) {
    if (!(features.*entry.feature)) continue;
    bool placed = false;
    for (VkBaseOutStructure* at = next_of(&chain); at; at = next_of(at)) {
      for (const FeaturePlace& place : {entry.own, entry.core}) {
        if (!place.exists() || place.type != at->sType) continue;
        *place_in(at, place) = VK_TRUE;
        placed = true;
      }
    }
    if (!placed) unplaced.push_back(&entry);
  }
  return unplaced;
}

DeviceFeatures features_of(const Capabilities& c) {
  DeviceFeatures features;
  features.storage16 = c.has(kStorage16);
  features.storage8 = c.has(kStorage8);
  features.float16 = c.has(kFloat16);
  features.buffer_address = c.has(kBufferAddress);
  features.timeline_semaphore = c.timeline_semaphores;
  features.subgroup_size_control = features.full_subgroups = c.has(kSubgroupSizeControl);
  features.integer_dot = c.has(kIntegerDot);
  features.cooperative_matrix = features.memory_model = features.memory_model_device_scope =
      c.has(kCooperativeMatrix);
  features.flexible_matrices = c.has(kFlexibleMatrices);
  features.workgroup_matrices = features.matrix_tensors = features.matrix_blocks =
      features.matrix_elements = (c.features & kWorkgroupMatrices) != 0;
  features.int8 = (c.features & kIntegerMatrices) != 0;
  features.bf16 = features.bf16_matrices = (c.features & kBF16Operands) != 0;
  features.memory_priority = c.memory_priority;
  features.occupancy_priority = c.occupancy_priority;
  return features;
}

DeviceFeatures common_features(const DeviceFeatures& a, const DeviceFeatures& b) {
  DeviceFeatures common;
  for (const FeatureEntry& entry : feature_entries())
    common.*entry.feature = a.*entry.feature && b.*entry.feature;
  return common;
}

DeviceFeatures with_extensions(const DeviceFeatures& features, uint32_t api_version,
                               const std::vector<std::string>& extensions) {
  DeviceFeatures left = features;
  for (const FeatureEntry& entry : feature_entries()) {
    if (needs_extension(entry, api_version) && !among(extensions, entry.extension))
      left.*entry.feature = false;
  }
  return left;
}

DeviceFeatures supported_features(const InstanceFunctions& vk, VkPhysicalDevice device,
                                  uint32_t api_version,
                                  const std::vector<std::string>& extensions) {
  DeviceFeatures all;
  for (const FeatureEntry& entry : feature_entries()) all.*entry.feature = true;
  // Structures of missing extensions must not be asked for. Drivers may leave unknown structures
  // unchanged.
  FeatureStructures structures(with_extensions(all, api_version, extensions), VK_FALSE);
  vk.vkGetPhysicalDeviceFeatures2(device, &structures.head);
  return read_features(structures.head);
}

std::vector<const char*> extensions_of(const DeviceFeatures& features, uint32_t api_version) {
  std::vector<const char*> names;
  for (const FeatureEntry& entry : feature_entries()) {
    if (!(features.*entry.feature) || !needs_extension(entry, api_version)) continue;
    const bool there = std::any_of(names.begin(), names.end(), [&](const char* name) {
      return std::strcmp(name, entry.extension) == 0;
    });
    if (!there) names.push_back(entry.extension);
  }
  return names;
}

std::vector<std::string> device_extensions(const InstanceFunctions& vk, VkPhysicalDevice device) {
  uint32_t count = 0;
  vk.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> found(count);
  vk.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, found.data());
  found.resize(count);
  std::vector<std::string> names;
  for (const VkExtensionProperties& extension : found) names.push_back(extension.extensionName);
  return names;
}

}  // namespace mulciber
