// runtime/recent_vulkan.h says what Vulkan's own header says, where that is new enough to compare.
#include <cstddef>

#include <vulkan/vulkan_core.h>

#include "tests/catch.h"

#if defined(VK_KHR_cooperative_matrix) && defined(VK_NV_cooperative_matrix2)

namespace vulkan {
constexpr auto kFeatures = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
constexpr auto kProperties = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
constexpr const char* kMatrixExtension = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME;
constexpr auto kFeatures2 = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV;
constexpr auto kFlexible = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_FLEXIBLE_DIMENSIONS_PROPERTIES_NV;
constexpr const char* kMatrix2Extension = VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME;
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
}

#else

TEST_CASE("Declarations for old Vulkan headers are those of new ones") {
  MULCIBER_SKIP("these headers of Vulkan are among the old ones");
}

#endif
