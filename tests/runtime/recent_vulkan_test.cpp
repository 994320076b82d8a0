// runtime/recent_vulkan.h agrees with Vulkan's own headers, where these are recent enough to
// compare.
#include <cstddef>

#include <vulkan/vulkan_core.h>

#include "tests/catch.h"

// This extension is newer than the other two: headers may lack it alone.
#ifdef VK_NV_compute_occupancy_priority
#define HAS_OCCUPANCY
#endif

#ifdef VK_KHR_shader_bfloat16
#define HAS_BFLOAT16
#endif

#if defined(VK_KHR_cooperative_matrix) && defined(VK_NV_cooperative_matrix2)

namespace vulkan {
constexpr auto kFeatures = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
constexpr auto kProperties = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
constexpr const char* kMatrixExtension = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
constexpr auto kFeatures2 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV;
constexpr auto kFlexible = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV;
constexpr const char* kMatrix2Extension = VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME;
constexpr auto kProperties2 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV;
#ifdef HAS_BFLOAT16
constexpr auto kBfloat16 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
constexpr int kBfloat16Component = VK_COMPONENT_TYPE_BFLOAT16_KHR;
constexpr const char* kBfloat16Extension = VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME;
#undef VK_KHR_shader_bfloat16
#undef VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME
#endif
#ifdef HAS_OCCUPANCY
constexpr auto kOccupancy = VK_STRUCTURE_TYPE_COMPUTE_OCCUPANCY_PRIORITY_PARAMETERS_NV;
constexpr auto kOccupancyFeatures =
    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_OCCUPANCY_PRIORITY_FEATURES_NV;
constexpr const char* kOccupancyExtension = VK_NV_COMPUTE_OCCUPANCY_PRIORITY_EXTENSION_NAME;
constexpr float kNormalOccupancy = VK_COMPUTE_OCCUPANCY_PRIORITY_NORMAL_NV;
#undef VK_NV_compute_occupancy_priority
#undef VK_NV_COMPUTE_OCCUPANCY_PRIORITY_EXTENSION_NAME
#undef VK_COMPUTE_OCCUPANCY_PRIORITY_NORMAL_NV
#endif
}  // namespace vulkan

#undef VK_KHR_cooperative_matrix
#undef VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME
#undef VK_NV_cooperative_matrix2
#undef VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME
namespace recent {
#include "runtime/recent_vulkan.h"
}  // namespace recent

#define SAME_PLACE(TYPE, MEMBER) CHECK(offsetof(TYPE, MEMBER) == offsetof(recent::TYPE, MEMBER))

TEST_CASE("Declarations for old Vulkan headers are those of new ones") {
  CHECK(vulkan::kFeatures == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
  CHECK(vulkan::kProperties == VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
  CHECK(std::string(vulkan::kMatrixExtension) == VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  CHECK(int{VK_COMPONENT_TYPE_FLOAT16_KHR} == int{recent::VK_COMPONENT_TYPE_FLOAT16_KHR});
  CHECK(int{VK_COMPONENT_TYPE_FLOAT32_KHR} == int{recent::VK_COMPONENT_TYPE_FLOAT32_KHR});
  CHECK(int{VK_COMPONENT_TYPE_SINT8_KHR} == int{recent::VK_COMPONENT_TYPE_SINT8_KHR});
  CHECK(int{VK_COMPONENT_TYPE_SINT32_KHR} == int{recent::VK_COMPONENT_TYPE_SINT32_KHR});
  CHECK(int{VK_SCOPE_SUBGROUP_KHR} == int{recent::VK_SCOPE_SUBGROUP_KHR});
  CHECK(sizeof(VkCooperativeMatrixPropertiesKHR) ==
        sizeof(recent::VkCooperativeMatrixPropertiesKHR));
  SAME_PLACE(VkCooperativeMatrixPropertiesKHR, MSize);
  SAME_PLACE(VkCooperativeMatrixPropertiesKHR, KSize);
  SAME_PLACE(VkCooperativeMatrixPropertiesKHR, AType);
  SAME_PLACE(VkCooperativeMatrixPropertiesKHR, ResultType);
  SAME_PLACE(VkCooperativeMatrixPropertiesKHR, scope);
  CHECK(sizeof(VkPhysicalDeviceCooperativeMatrixFeaturesKHR) ==
        sizeof(recent::VkPhysicalDeviceCooperativeMatrixFeaturesKHR));
  SAME_PLACE(VkPhysicalDeviceCooperativeMatrixFeaturesKHR, cooperativeMatrix);

  CHECK(vulkan::kFeatures2 == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV);
  CHECK(vulkan::kFlexible ==
        VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV);
  CHECK(std::string(vulkan::kMatrix2Extension) == VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME);
  CHECK(sizeof(VkPhysicalDeviceCooperativeMatrix2FeaturesNV) ==
        sizeof(recent::VkPhysicalDeviceCooperativeMatrix2FeaturesNV));
  SAME_PLACE(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixFlexibleDimensions);
  CHECK(sizeof(VkCooperativeMatrixFlexibleDimensionsPropertiesNV) ==
        sizeof(recent::VkCooperativeMatrixFlexibleDimensionsPropertiesNV));
  SAME_PLACE(VkCooperativeMatrixFlexibleDimensionsPropertiesNV, MGranularity);
  SAME_PLACE(VkCooperativeMatrixFlexibleDimensionsPropertiesNV, KGranularity);
  SAME_PLACE(VkCooperativeMatrixFlexibleDimensionsPropertiesNV, AType);
  SAME_PLACE(VkCooperativeMatrixFlexibleDimensionsPropertiesNV, ResultType);
  SAME_PLACE(VkCooperativeMatrixFlexibleDimensionsPropertiesNV, scope);
  SAME_PLACE(VkCooperativeMatrixFlexibleDimensionsPropertiesNV, workgroupInvocations);
  CHECK(int{VK_SCOPE_WORKGROUP_KHR} == int{recent::VK_SCOPE_WORKGROUP_KHR});
  SAME_PLACE(VkPhysicalDeviceCooperativeMatrix2FeaturesNV, cooperativeMatrixBlockLoads);
  CHECK(vulkan::kProperties2 ==
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_PROPERTIES_NV);
  CHECK(sizeof(VkPhysicalDeviceCooperativeMatrix2PropertiesNV) ==
        sizeof(recent::VkPhysicalDeviceCooperativeMatrix2PropertiesNV));
  SAME_PLACE(VkPhysicalDeviceCooperativeMatrix2PropertiesNV,
             cooperativeMatrixFlexibleDimensionsMaxDimension);
}

#ifdef HAS_BFLOAT16
TEST_CASE("The declarations of bf16 are those of new headers") {
  CHECK(vulkan::kBfloat16 == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR);
  CHECK(vulkan::kBfloat16Component == int{VK_COMPONENT_TYPE_BFLOAT16_KHR});
  CHECK(std::string(vulkan::kBfloat16Extension) == VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME);
  CHECK(sizeof(VkPhysicalDeviceShaderBfloat16FeaturesKHR) ==
        sizeof(recent::VkPhysicalDeviceShaderBfloat16FeaturesKHR));
  SAME_PLACE(VkPhysicalDeviceShaderBfloat16FeaturesKHR, shaderBFloat16Type);
  SAME_PLACE(VkPhysicalDeviceShaderBfloat16FeaturesKHR, shaderBFloat16CooperativeMatrix);
}
#endif

#ifdef HAS_OCCUPANCY
TEST_CASE("The declarations of occupancy are those of new headers") {
  CHECK(vulkan::kOccupancy == VK_STRUCTURE_TYPE_COMPUTE_OCCUPANCY_PRIORITY_PARAMETERS_NV);
  CHECK(vulkan::kOccupancyFeatures ==
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_OCCUPANCY_PRIORITY_FEATURES_NV);
  CHECK(std::string(vulkan::kOccupancyExtension) ==
        VK_NV_COMPUTE_OCCUPANCY_PRIORITY_EXTENSION_NAME);
  CHECK(vulkan::kNormalOccupancy == VK_COMPUTE_OCCUPANCY_PRIORITY_NORMAL_NV);
  CHECK(sizeof(VkComputeOccupancyPriorityParametersNV) ==
        sizeof(recent::VkComputeOccupancyPriorityParametersNV));
  SAME_PLACE(VkComputeOccupancyPriorityParametersNV, occupancyPriority);
  SAME_PLACE(VkComputeOccupancyPriorityParametersNV, occupancyThrottling);
  CHECK(sizeof(VkPhysicalDeviceComputeOccupancyPriorityFeaturesNV) ==
        sizeof(recent::VkPhysicalDeviceComputeOccupancyPriorityFeaturesNV));
  SAME_PLACE(VkPhysicalDeviceComputeOccupancyPriorityFeaturesNV, computeOccupancyPriority);
}
#endif

#else

TEST_CASE("Declarations for old Vulkan headers are those of new ones") {
  MULCIBER_SKIP("these headers of Vulkan are among the old ones");
}

#endif
