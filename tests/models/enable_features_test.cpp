// Features that an application enables in a chain of its own: each has its place in the structures
// of single features and in those of Vulkan's versions, and a device that was made so works as one
// that was made with the chain of requirements().
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "runtime/device_features.h"
#include "tests/catch.h"
#include "tests/small_marian.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

using PlacedBools = std::vector<std::pair<std::string, VkBool32*>>;  // features by name

/// Structures of Vulkan's versions, as an engine has them.
struct VersionChain {
  VkPhysicalDeviceVulkan13Features v13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceVulkan12Features v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &v13};
  VkPhysicalDeviceVulkan11Features v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &v12};
  VkPhysicalDeviceFeatures2 head{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11};

  PlacedBools features() {
    return {{"storageBuffer16BitAccess", &v11.storageBuffer16BitAccess},
            {"storageBuffer8BitAccess", &v12.storageBuffer8BitAccess},
            {"shaderFloat16", &v12.shaderFloat16},
            {"shaderInt8", &v12.shaderInt8},
            {"bufferDeviceAddress", &v12.bufferDeviceAddress},
            {"timelineSemaphore", &v12.timelineSemaphore},
            {"vulkanMemoryModel", &v12.vulkanMemoryModel},
            {"vulkanMemoryModelDeviceScope", &v12.vulkanMemoryModelDeviceScope},
            {"subgroupSizeControl", &v13.subgroupSizeControl},
            {"computeFullSubgroups", &v13.computeFullSubgroups},
            {"shaderIntegerDotProduct", &v13.shaderIntegerDotProduct}};
  }
};

/// Structures of extensions that are in no version of Vulkan.
struct ExtensionStructures {
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDeviceCooperativeMatrix2FeaturesNV matrix2{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bf16{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
  VkPhysicalDeviceMemoryPriorityFeaturesEXT priority{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT};
  VkPhysicalDeviceComputeOccupancyPriorityFeaturesNV occupancy{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_OCCUPANCY_PRIORITY_FEATURES_NV};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};

  /// Puts the structures of these extensions at the front of a chain.
  void chain(VkPhysicalDeviceFeatures2& head, const std::vector<std::string>& extensions) {
    const auto add = [&](const char* extension, auto& structure) {
      if (std::ranges::find(extensions, extension) == extensions.end()) return;
      structure.pNext = std::exchange(head.pNext, &structure);
    };
    add(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, matrix);
    add(VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME, matrix2);
    add(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, bf16);
    add(VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME, priority);
    add(VK_NV_COMPUTE_OCCUPANCY_PRIORITY_EXTENSION_NAME, occupancy);
    add(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, executables);
  }
  PlacedBools features() {
    return {
        {"cooperativeMatrix", &matrix.cooperativeMatrix},
        {"cooperativeMatrixFlexibleDimensions", &matrix2.cooperativeMatrixFlexibleDimensions},
        {"cooperativeMatrixWorkgroupScope", &matrix2.cooperativeMatrixWorkgroupScope},
        {"cooperativeMatrixTensorAddressing", &matrix2.cooperativeMatrixTensorAddressing},
        {"cooperativeMatrixBlockLoads", &matrix2.cooperativeMatrixBlockLoads},
        {"cooperativeMatrixPerElementOperations", &matrix2.cooperativeMatrixPerElementOperations},
        {"shaderBFloat16Type", &bf16.shaderBFloat16Type},
        {"shaderBFloat16CooperativeMatrix", &bf16.shaderBFloat16CooperativeMatrix},
        {"memoryPriority", &priority.memoryPriority},
        {"computeOccupancyPriority", &occupancy.computeOccupancyPriority},
        {"pipelineExecutableInfo", &executables.pipelineExecutableInfo}};
  }
};

/// Structures of single features that versions of Vulkan took in, behind those of extensions.
struct SingleChain {
  VkPhysicalDevice16BitStorageFeatures storage16{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  VkPhysicalDevice8BitStorageFeatures storage8{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, &storage16};
  VkPhysicalDeviceShaderFloat16Int8Features small{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, &storage8};
  VkPhysicalDeviceBufferDeviceAddressFeatures address{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, &small};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, &address};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroups{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, &timeline};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, &subgroups};
  VkPhysicalDeviceVulkanMemoryModelFeatures model{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, &dot};
  VkPhysicalDeviceFeatures2 head{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &model};

  PlacedBools features() {
    return {{"storageBuffer16BitAccess", &storage16.storageBuffer16BitAccess},
            {"storageBuffer8BitAccess", &storage8.storageBuffer8BitAccess},
            {"shaderFloat16", &small.shaderFloat16},
            {"shaderInt8", &small.shaderInt8},
            {"bufferDeviceAddress", &address.bufferDeviceAddress},
            {"timelineSemaphore", &timeline.timelineSemaphore},
            {"subgroupSizeControl", &subgroups.subgroupSizeControl},
            {"computeFullSubgroups", &subgroups.computeFullSubgroups},
            {"shaderIntegerDotProduct", &dot.shaderIntegerDotProduct},
            {"vulkanMemoryModel", &model.vulkanMemoryModel},
            {"vulkanMemoryModelDeviceScope", &model.vulkanMemoryModelDeviceScope}};
  }
};

std::vector<std::string> every_extension() {
  std::vector<std::string> names;
  for (const FeatureEntry& entry : feature_entries()) names.emplace_back(entry.extension);
  return names;
}

/// Requirements that ask for these features alone.
struct AskedFeatures {
  FeatureStructures structures;
  Requirements requirements;

  explicit AskedFeatures(const DeviceFeatures& features) : structures(features) {
    requirements.features = &structures.head;
  }
};

bool is_of_vulkan_1_3(const VulkanApplication& application) {
  VkPhysicalDeviceProperties properties;
  application.instance_vk.vkGetPhysicalDeviceProperties(application.physical.physical_device,
                                                        &properties);
  return properties.apiVersion >= VK_API_VERSION_1_3;
}

}  // namespace

TEST_CASE("The table of features is the list of those that are asked for") {
  const VulkanApplication application;
  std::vector<std::string> listed, known;
  for (const Requirement& each : application.asked.list) {
    if (each.kind == Requirement::Kind::kFeature) listed.push_back(each.name);
  }
  std::set<std::pair<VkStructureType, size_t>> places;
  for (const FeatureEntry& entry : feature_entries()) {
    INFO(entry.name);
    known.emplace_back(entry.name);
    CHECK(entry.core.exists() == (entry.core_since != 0));
    for (const FeaturePlace& place : {entry.own, entry.core}) {
      if (!place.exists()) continue;
      CHECK(place.offset >= sizeof(VkBaseOutStructure));
      CHECK(place.offset + sizeof(VkBool32) <= place.size);
      CHECK(places.emplace(place.type, place.offset).second);  // no other feature is there
    }
  }
  CHECK(known == listed);
}

TEST_CASE("A feature is set in the member of its name, and nothing else is") {
  size_t in_single = 0, in_versions = 0;
  for (const FeatureEntry& entry : feature_entries()) {
    INFO(entry.name);
    DeviceFeatures one;
    one.*entry.feature = true;
    AskedFeatures asked(one);
    const auto set_in = [&](VkPhysicalDeviceFeatures2& head, const PlacedBools& members) {
      size_t set = 0;
      const std::vector<UnplacedFeature> unplaced = enable(asked.requirements, &head);
      for (const auto& [name, member] : members) {
        CHECK(*member == (name == entry.name ? VK_TRUE : VK_FALSE));
        set += *member;
      }
      CHECK(unplaced.size() == 1 - set);
      return set;
    };
    SingleChain single;
    ExtensionStructures extensions;
    extensions.chain(single.head, every_extension());
    PlacedBools members = single.features();
    std::ranges::copy(extensions.features(), std::back_inserter(members));
    in_single += set_in(single.head, members);
    VersionChain versions;
    in_versions += set_in(versions.head, versions.features());
  }
  CHECK(in_single == feature_entries().size());
  CHECK(in_versions == VersionChain().features().size());
}

TEST_CASE("What a chain has no structure for is named with the structures that can hold it") {
  VersionChain versions;
  versions.v12.hostQueryReset = VK_TRUE;
  versions.v12.shaderFloat16 = VK_TRUE;
  DeviceFeatures features;
  features.float16 = features.memory_priority = true;
  AskedFeatures asked(features);
  const std::vector<UnplacedFeature> lacks = enable(asked.requirements, &versions.head);
  REQUIRE(lacks.size() == 1);
  CHECK(lacks[0].name == "memoryPriority");
  CHECK(lacks[0].structures ==
        std::vector<std::string>{"VkPhysicalDeviceMemoryPriorityFeaturesEXT"});
  CHECK(versions.v12.hostQueryReset == VK_TRUE);  // the application's own
  CHECK(versions.v12.shaderFloat16 == VK_TRUE);
  VkPhysicalDeviceFeatures2 bare{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  const std::vector<UnplacedFeature> all = enable(asked.requirements, &bare);
  REQUIRE(all.size() == 2);
  CHECK(all[0].structures == std::vector<std::string>{"VkPhysicalDeviceShaderFloat16Int8Features",
                                                      "VkPhysicalDeviceVulkan12Features"});
  CHECK(enable(Requirements(), &bare).empty());
  CHECK_THROWS_AS(enable(asked.requirements, nullptr), SettingError);
}

TEST_CASE("A device with features in the application's own chain works as one with the library's") {
  const VulkanApplication plain(true, VK_API_VERSION_1_3);
  if (!is_of_vulkan_1_3(plain)) MULCIBER_SKIP("the device is older than Vulkan 1.3");
  VersionChain offered;
  plain.instance_vk.vkGetPhysicalDeviceFeatures2(plain.physical.physical_device, &offered.head);
  VersionChain versions;
  versions.v12.hostQueryReset = offered.v12.hostQueryReset;  // of the application's own
  ExtensionStructures extensions;
  extensions.chain(versions.head, plain.asked.extensions);
  const VulkanApplication merged(true, VK_API_VERSION_1_3, &versions.head);
  CHECK(merged.unplaced.empty());
  CHECK(versions.v12.hostQueryReset == offered.v12.hostQueryReset);
  const auto device = adopt_device(merged.lent()), same = adopt_device(plain.lent());
  CHECK(device->capabilities().features == same->capabilities().features);
  CHECK(device->capabilities().timeline_semaphores == same->capabilities().timeline_semaphores);
  const TranslateOptions options = {.max_new_tokens = 4};
  const Translation found = Translator(device, small_marian().string()).translate("hello", options),
                    expected =
                        Translator(same, small_marian().string()).translate("hello", options);
  CHECK(found.ids == expected.ids);
  CHECK(found.score == expected.score);
}
