#include "runtime/capabilities.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "runtime/device_features.h"
#include "runtime/queue_families.h"

namespace mulciber {
namespace {

// Appends a structure to a pNext chain.
template <typename Head, typename Next>
void chain(Head& head, Next& next) {
  next.pNext = head.pNext;
  head.pNext = &next;
}

bool has_extension(const std::vector<std::string>& extensions, const char* name) {
  return std::find(extensions.begin(), extensions.end(), name) != extensions.end();
}

DeviceKind kind_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return DeviceKind::kDiscrete;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return DeviceKind::kIntegrated;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return DeviceKind::kSoftware;
    default: return DeviceKind::kVirtual;
  }
}

// Mesa's software drivers report 0.0.1 as their version; Mesa's own version is in driver_info:
// "Mesa 22.3.6 (LLVM 15.0.6)".
std::array<uint32_t, 3> version_of(const Capabilities& c) {
  uint32_t a = 0, b = 0, d = 0;
  if (std::sscanf(c.driver_info.c_str(), "Mesa %u.%u.%u", &a, &b, &d) >= 2) return {a, b, d};
  if (c.driver_id == VK_DRIVER_ID_NVIDIA_PROPRIETARY) {  // 10.8.8.6 bits
    return {c.packed_driver_version >> 22, (c.packed_driver_version >> 14) & 0xff,
            (c.packed_driver_version >> 6) & 0xff};
  }
  return {VK_VERSION_MAJOR(c.packed_driver_version), VK_VERSION_MINOR(c.packed_driver_version),
          VK_VERSION_PATCH(c.packed_driver_version)};
}

void read_heaps(const InstanceFunctions& vk, VkPhysicalDevice device, bool budget_known,
                Capabilities& c) {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 memory{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  if (budget_known) chain(memory, budget);
  vk.vkGetPhysicalDeviceMemoryProperties2(device, &memory);
  const auto& properties = memory.memoryProperties;
  for (uint32_t i = 0; i < properties.memoryHeapCount; ++i) {
    MemoryHeap heap{};
    heap.size = properties.memoryHeaps[i].size;
    heap.budget = budget_known && budget.heapBudget[i] > 0 ? budget.heapBudget[i] : heap.size;
    heap.device_local = properties.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
    c.heaps.push_back(heap);
  }
  constexpr VkMemoryPropertyFlags kHostFlags =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  uint64_t largest_local = 0;
  for (const MemoryHeap& heap : c.heaps) {
    if (heap.device_local) largest_local = std::max(largest_local, heap.size);
  }
  for (uint32_t i = 0; i < properties.memoryTypeCount; ++i) {
    const VkMemoryType& type = properties.memoryTypes[i];
    if ((type.propertyFlags & kHostFlags) != kHostFlags) continue;
    MemoryHeap& heap = c.heaps[type.heapIndex];
    heap.host_visible = true;
    // A heap that has only a window of 256 MiB onto a large card does not count: weights would not
    // fit through it.
    if ((type.propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) &&
        heap.size >= largest_local / 2) {
      c.host_visible_device_memory = true;
    }
  }
}

/// Tiles of a kernel row that a whole workgroup holds (matmul_tensor.comp). `columns` counts one
/// half of a gated product.
struct WorkgroupTile {
  Feature feature;
  uint32_t invocations, rows, columns, depth;
};
constexpr WorkgroupTile kWorkgroupTiles[] = {{kWorkgroupMatrix256, 256, 128, 64, 32},
                                             {kWorkgroupMatrix128, 128, 64, 32, 32}};

/// Adds the feature of each workgroup tile whose size fits one that a device lists.
void add_workgroup_tiles(const VkCooperativeMatrixFlexibleDimensionsPropertiesNV& listed,
                         const VkPhysicalDeviceCooperativeMatrix2PropertiesNV& limits,
                         Capabilities& c) {
  if (listed.scope != VK_SCOPE_WORKGROUP_KHR || listed.AType != VK_COMPONENT_TYPE_FLOAT16_KHR ||
      listed.BType != VK_COMPONENT_TYPE_FLOAT16_KHR ||
      listed.CType != VK_COMPONENT_TYPE_FLOAT32_KHR ||
      listed.ResultType != VK_COMPONENT_TYPE_FLOAT32_KHR) {
    return;
  }
  for (const WorkgroupTile& tile : kWorkgroupTiles) {
    if (listed.workgroupInvocations == tile.invocations &&
        tile.invocations <= limits.cooperativeMatrixWorkgroupScopeMaxWorkgroupSize &&
        std::max(tile.rows, 2 * tile.columns) <=
            limits.cooperativeMatrixFlexibleDimensionsMaxDimension &&
        tile.rows % listed.MGranularity == 0 && tile.columns % listed.NGranularity == 0 &&
        tile.depth % listed.KGranularity == 0) {
      c.features |= tile.feature;
    }
  }
}

/// Reads sizes that VK_NV_cooperative_matrix2 allows beside those of VK_KHR_cooperative_matrix.
/// workgroups: whether the device has all that kernels need of matrices held by a workgroup.
void read_flexible_matrices(const InstanceFunctions& vk, VkPhysicalDevice device, bool workgroups,
                            Capabilities& c) {
  const auto properties = vk.vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV;
  if (!properties) return;
  uint32_t count = 0;
  properties(device, &count, nullptr);
  std::vector<VkCooperativeMatrixFlexibleDimensionsPropertiesNV> list(
      count, {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV});
  properties(device, &count, list.data());
  VkPhysicalDeviceCooperativeMatrix2PropertiesNV limits{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV};
  VkPhysicalDeviceProperties2 asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  chain(asked, limits);
  vk.vkGetPhysicalDeviceProperties2(device, &asked);
  for (const auto& p : list) {
    if (workgroups) add_workgroup_tiles(p, limits, c);
    c.matrix_types.push_back({p.MGranularity, p.NGranularity, p.KGranularity,
                              static_cast<uint32_t>(p.AType), static_cast<uint32_t>(p.BType),
                              static_cast<uint32_t>(p.CType), static_cast<uint32_t>(p.ResultType),
                              p.scope == VK_SCOPE_SUBGROUP_KHR, p.saturatingAccumulation == VK_TRUE,
                              true});
  }
}

void read_matrix_types(const InstanceFunctions& vk, VkPhysicalDevice device,
                       const DeviceFeatures& features, Capabilities& c) {
  const auto properties = vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  if (!properties) return;
  uint32_t count = 0;
  properties(device, &count, nullptr);
  std::vector<VkCooperativeMatrixPropertiesKHR> list(
      count, {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
  properties(device, &count, list.data());
  for (const auto& p : list) {
    c.matrix_types.push_back({p.MSize, p.NSize, p.KSize, static_cast<uint32_t>(p.AType),
                              static_cast<uint32_t>(p.BType), static_cast<uint32_t>(p.CType),
                              static_cast<uint32_t>(p.ResultType), p.scope == VK_SCOPE_SUBGROUP_KHR,
                              p.saturatingAccumulation == VK_TRUE});
  }
  if (c.has(kFlexibleMatrices)) {
    const bool workgroups = features.workgroup_matrices && features.matrix_tensors &&
                            features.matrix_blocks && features.matrix_elements &&
                            features.buffer_address;
    read_flexible_matrices(vk, device, workgroups, c);
  }
  const auto offers = [&](uint32_t m, uint32_t n, uint32_t k,
                          uint32_t operands = VK_COMPONENT_TYPE_FLOAT16_KHR,
                          uint32_t sums = VK_COMPONENT_TYPE_FLOAT32_KHR) {
    return std::ranges::any_of(c.matrix_types, [&](const MatrixType& t) {
      const bool size = t.flexible ? m % t.m == 0 && n % t.n == 0 && k % t.k == 0
                                   : m == t.m && n == t.n && k == t.k;
      return size && t.subgroup_scope && !t.saturating && t.a == operands && t.b == operands &&
             t.c == sums && t.result == sums;
    });
  };
  if (offers(16, 16, 16)) c.features |= kMatrix16x16x16F16;
  if (offers(8, 16, 16)) c.features |= kMatrix8x16x16F16;
  if (offers(8, 8, 16)) c.features |= kMatrix8x8x16F16;
  if (offers(8, 8, 8)) c.features |= kMatrix8x8x8F16;
  if (features.int8) {
    const auto offers_int8 = [&](uint32_t m, uint32_t n, uint32_t k) {
      return offers(m, n, k, VK_COMPONENT_TYPE_SINT8_KHR, VK_COMPONENT_TYPE_SINT32_KHR);
    };
    if (offers_int8(16, 16, 16)) c.features |= kMatrix16x16x16I8;
    if (offers_int8(16, 16, 32)) c.features |= kMatrix16x16x32I8;
    if (offers_int8(8, 16, 32)) c.features |= kMatrix8x16x32I8;
    if (offers_int8(8, 8, 32)) c.features |= kMatrix8x8x32I8;
  }
  if (!features.bf16 || !features.bf16_matrices) return;
  constexpr uint32_t kBF16 = VK_COMPONENT_TYPE_BFLOAT16_KHR;
  if (offers(16, 16, 16, kBF16)) c.features |= kMatrix16x16x16BF16;
  if (offers(8, 16, 16, kBF16)) c.features |= kMatrix8x16x16BF16;
  if (offers(8, 8, 16, kBF16)) c.features |= kMatrix8x8x16BF16;
}

/// Number of compute units, by the extension of the GPU's vendor; 0 without such an extension.
uint32_t read_units(const InstanceFunctions& vk, VkPhysicalDevice device,
                    const std::vector<std::string>& extensions) {
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceShaderCorePropertiesAMD amd{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
  VkPhysicalDeviceShaderCoreProperties2AMD active{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM arm{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM};
  const auto ask = [&](const char* extension, auto& answer) {
    if (has_extension(extensions, extension)) chain(properties, answer);
  };
  ask(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME, amd);
  ask(VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME, active);
  ask(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME, nvidia);
  ask(VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME, arm);
  if (!properties.pNext) return 0;
  vk.vkGetPhysicalDeviceProperties2(device, &properties);
  if (active.activeComputeUnitCount != 0) return active.activeComputeUnitCount;
  const uint32_t there =
      amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray;
  return std::max({there, nvidia.shaderSMCount, arm.shaderCoreCount});
}

}  // namespace

const std::vector<FeatureName>& feature_names() {
  static const std::vector<FeatureName> names = {
      {kFloat16, "16-bit arithmetic", "no-fp16"},
      {kStorage16, "16-bit storage", "no-16bit-storage"},
      {kStorage8, "8-bit storage", "no-8bit-storage"},
      {kTexelLoads, "texel loads", "no-texels"},
      {kSubgroupArithmetic, "subgroup arithmetic", "no-subgroup"},
      {kSubgroupShuffle, "subgroup shuffle", "no-shuffle"},
      {kBufferAddress, "buffer addresses", "no-address"},
      {kCooperativeMatrix, "cooperative matrices", "no-coopmat"},
      {kMatrix16x16x16F16, "16x16x16 f16 matrices", nullptr},
      {kMatrix8x16x16F16, "8x16x16 f16 matrices", nullptr},
      {kMatrix8x8x16F16, "8x8x16 f16 matrices", nullptr},
      {kMatrix8x8x8F16, "8x8x8 f16 matrices", nullptr},
      {kFlexibleMatrices, "matrices of flexible sizes", nullptr},
      {kWorkgroupMatrix256, "f16 matrices of 256 invocations", "no-workgroup-matrices"},
      {kWorkgroupMatrix128, "f16 matrices of 128 invocations", nullptr},
      {kMatrix16x16x16BF16, "16x16x16 bf16 matrices", "no-bf16-matrices"},
      {kMatrix8x16x16BF16, "8x16x16 bf16 matrices", nullptr},
      {kMatrix8x8x16BF16, "8x8x16 bf16 matrices", nullptr},
      {kMatrix16x16x16I8, "16x16x16 int8 matrices", "no-int8-matrices"},
      {kMatrix16x16x32I8, "16x16x32 int8 matrices", nullptr},
      {kMatrix8x16x32I8, "8x16x32 int8 matrices", nullptr},
      {kMatrix8x8x32I8, "8x8x32 int8 matrices", nullptr},
      {kSubgroupSizeControl, "subgroup size control", "no-subgroup-size"},
      {kIntegerDot, "integer dot products", "no-integer-dot"},
      {kGpu, "hardware devices", nullptr},
      {kCpu, "software drivers", nullptr},
      {kFastAddress, "software drivers with fast buffer addresses", nullptr},
      {kUniformLoads, "software drivers with scalar uniform loads", nullptr},
      {kNoUnrolling, "software drivers that unroll no loops", nullptr},
      {kUnrolling, "software drivers that unroll loops", nullptr},
      {kLargeTiles, "hardware with registers for large tiles", nullptr},
      {kFastIntegerDot, "an instruction for signed integer dot products", nullptr},
      {kFastMixedDot, "an instruction for mixed integer dot products", nullptr},
      {kFastHalf, "hardware with fast 16-bit arithmetic", nullptr},
      {kManyUnits, "hardware of many compute units", nullptr},
      {kPlainMatrices, "tests of matrix units without them", nullptr},
  };
  return names;
}

std::string describe_features(FeatureSet features) {
  std::string text;
  for (const FeatureName& name : feature_names()) {
    if (features & name.feature) text += (text.empty() ? "" : ", ") + std::string(name.name);
  }
  return text;
}

const char* name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kDiscrete: return "discrete GPU";
    case DeviceKind::kIntegrated: return "integrated GPU";
    case DeviceKind::kVirtual: return "virtual GPU";
    case DeviceKind::kSoftware: return "software";
  }
  return "?";
}

void require_subgroup_size(Capabilities& c, uint32_t size) {
  if (!c.has(kSubgroupSizeControl)) return;
  c.subgroup_size = std::clamp(std::bit_floor(size), c.min_subgroup_size, c.max_subgroup_size);
}

uint64_t Capabilities::device_memory() const {
  uint64_t most = 0;
  for (const MemoryHeap& heap : heaps) {
    if (heap.device_local) most = std::max(most, std::min(heap.budget, heap.size));
  }
  return most;
}

Capabilities read_capabilities(const InstanceFunctions& vk, VkPhysicalDevice device,
                               uint32_t instance_version, const DeviceFeatures* enabled) {
  Capabilities c;
  const std::vector<std::string> extensions = device_extensions(vk, device);

  VkPhysicalDeviceProperties basic;
  vk.vkGetPhysicalDeviceProperties(device, &basic);
  c.api_version = std::min(basic.apiVersion, instance_version);
  auto offers = [&](uint32_t core_since, const char* extension) {
    return (core_since != 0 && c.api_version >= core_since) || has_extension(extensions, extension);
  };

  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceDriverProperties driver{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceSubgroupProperties subgroup{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceSubgroupSizeControlProperties sizes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  VkPhysicalDeviceMaintenance3Properties maintenance{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  chain(properties, subgroup);
  chain(properties, maintenance);
  if (offers(VK_API_VERSION_1_2, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME))
    chain(properties, driver);
  const bool size_control = offers(VK_API_VERSION_1_3, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  if (size_control) chain(properties, sizes);
  const bool integer_dot =
      offers(VK_API_VERSION_1_3, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  VkPhysicalDeviceShaderIntegerDotProductProperties dot_properties{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
  if (integer_dot) chain(properties, dot_properties);
  vk.vkGetPhysicalDeviceProperties2(device, &properties);

  const VkPhysicalDeviceProperties& p = properties.properties;
  const VkPhysicalDeviceLimits& limits = p.limits;
  c.name = p.deviceName;
  c.driver_name = driver.driverName;
  c.driver_info = driver.driverInfo;
  c.driver_id = driver.driverID;
  c.packed_driver_version = p.driverVersion;
  const VkConformanceVersion& passed = driver.conformanceVersion;
  c.conformance_version = {passed.major, passed.minor, passed.subminor, passed.patch};
  c.driver_version = version_of(c);
  c.vendor_id = p.vendorID;
  c.device_id = p.deviceID;
  std::copy(std::begin(p.pipelineCacheUUID), std::end(p.pipelineCacheUUID),
            c.pipeline_cache_uuid.begin());
  c.kind = kind_of(p.deviceType);

  c.max_storage_range = limits.maxStorageBufferRange;
  c.max_allocation = maintenance.maxMemoryAllocationSize;
  c.max_push_constants = limits.maxPushConstantsSize;
  c.max_shared_memory = limits.maxComputeSharedMemorySize;
  c.max_invocations = limits.maxComputeWorkGroupInvocations;
  c.max_local_size = limits.maxComputeWorkGroupSize[0];
  std::copy(std::begin(limits.maxComputeWorkGroupCount), std::end(limits.maxComputeWorkGroupCount),
            c.max_groups.begin());
  c.max_storage_buffers =
      std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers);
  c.storage_alignment = std::max<uint64_t>(limits.minStorageBufferOffsetAlignment, 16);
  c.timestamp_period = limits.timestampPeriod;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = subgroup.subgroupSize;

  DeviceFeatures features = supported_features(vk, device, c.api_version, extensions);
  if (enabled) features = common_features(features, *enabled);

  auto add = [&](bool present, Feature feature) {
    if (present) c.features |= feature;
  };
  add(features.float16, kFloat16);
  add(features.storage16, kStorage16);
  add(features.storage8, kStorage8);
  add(limits.minTexelBufferOffsetAlignment <= kTexelBytes &&
          limits.maxTexelBufferElements >= limits.maxStorageBufferRange / kTexelBytes,
      kTexelLoads);
  add(features.buffer_address, kBufferAddress);
  const bool in_compute = subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT;
  add(in_compute && (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT),
      kSubgroupArithmetic);
  add(in_compute && (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT),
      kSubgroupShuffle);
  if (size_control && features.subgroup_size_control && features.full_subgroups &&
      (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    c.features |= kSubgroupSizeControl;
    c.min_subgroup_size = sizes.minSubgroupSize;
    c.max_subgroup_size = sizes.maxSubgroupSize;
  }
  add(features.integer_dot, kIntegerDot);
  add(features.integer_dot && dot_properties.integerDotProduct4x8BitPackedSignedAccelerated,
      kFastIntegerDot);
  add(features.integer_dot &&
          dot_properties.integerDotProduct4x8BitPackedMixedSignednessAccelerated,
      kFastMixedDot);
  c.timeline_semaphores = features.timeline_semaphore;
  c.pipeline_statistics = features.pipeline_executables;
  c.memory_priority = features.memory_priority;
  c.occupancy_priority = features.occupancy_priority;
  if (c.api_version >= VK_API_VERSION_1_3 && features.cooperative_matrix && features.memory_model &&
      features.memory_model_device_scope && (c.features & kFloat16) && (c.features & kStorage16)) {
    c.features |= kCooperativeMatrix;
    add(features.flexible_matrices, kFlexibleMatrices);
    read_matrix_types(vk, device, features, c);
  }
  c.features |= c.kind == DeviceKind::kSoftware ? kCpu : kGpu | kLargeTiles;
  c.tuning = tuning_of(c.kind);
  c.compute_units = read_units(vk, device, extensions);
  if ((c.features & kGpu) && c.compute_units >= kLeastOfManyUnits) c.features |= kManyUnits;
  read_heaps(vk, device, has_extension(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME), c);
  return c;
}

}  // namespace mulciber
