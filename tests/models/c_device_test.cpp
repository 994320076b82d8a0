// Devices and requirements in C: reports are those of C++.
#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("Requirements in C are those in C++") {
  VulkanApplication application;
  const Lent lent(application);
  const Context context;
  MulciberRequirements found = {sizeof(found)};
  REQUIRE(mulciber_query_requirements(context.handle, &lent.physical, nullptr, nullptr, &found) ==
          MULCIBER_OK);
  CHECK(found.fits);
  CHECK(found.queue_family == application.asked.queue_family);
  REQUIRE(found.requirement_count == application.asked.list.size());
  for (uint32_t i = 0; i < found.requirement_count; ++i) {
    CHECK(found.requirements[i].name == application.asked.list[i].name);
    CHECK((found.requirements[i].available != 0) == application.asked.list[i].available);
  }
  CHECK(found.extension_count == application.asked.extensions.size());
}

TEST_CASE("A device's report and requirements with options in C are those in C++") {
  const Session session(small_decoder().string());
  MulciberContext* c = session.c;
  MulciberDeviceReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_device(c, session.device, &report) == MULCIBER_OK);
  const auto device = adopt_device(session.application.lent());
  const DeviceDescription expected = describe(*device);
  CHECK(report.name == expected.name);
  CHECK(report.driver == expected.driver);
  CHECK((report.software != 0) == expected.software);
  CHECK(report.occupancy_priority == expected.occupancy_priority);
  CHECK(report.queue_priority == MULCIBER_QUEUE_PRIORITY_DEFAULT);

  MulciberBorders borders = {sizeof(borders)};
  REQUIRE(mulciber_borders(c, &borders) == MULCIBER_OK);
  CHECK((borders.waits_for_stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) != 0);
  CHECK((borders.shown_to_accesses & VK_ACCESS_HOST_READ_BIT) != 0);

  const Lent lent(session.application);
  MulciberRequirements some = {sizeof(some)}, more = {sizeof(more)};
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 32;
  REQUIRE(mulciber_query_requirements(c, &lent.physical, session.model, &load, &some) ==
          MULCIBER_OK);
  const uint64_t bytes = some.context_bytes;
  load.context = 96;
  REQUIRE(mulciber_query_requirements(c, &lent.physical, session.model, &load, &more) ==
          MULCIBER_OK);
  CHECK(more.context_bytes > bytes);
  load.memory_limit = 1000;
  REQUIRE(mulciber_query_requirements(c, &lent.physical, session.model, &load, &more) ==
          MULCIBER_OK);
  CHECK_FALSE(more.fits);
  CHECK_THAT(more.obstacles, ContainsSubstring("memory"));
  CHECK(mulciber_describe_device(c, nullptr, &report) == MULCIBER_ERROR_SETTING);

  // A priority out of range is refused, where a device takes one.
  MulciberDeviceInfo info = lent.info;
  info.occupancy_priority = 2;
  MulciberDevice* refused = nullptr;
  CHECK(mulciber_adopt_device(c, &info, &refused) == MULCIBER_ERROR_SETTING);
}

TEST_CASE("Features are enabled in C as in C++") {
  VulkanApplication application;
  const Lent lent(application);
  const Context context;
  MulciberContext* c = context.handle;
  MulciberRequirements found = {sizeof(found)};
  REQUIRE(mulciber_query_requirements(c, &lent.physical, nullptr, nullptr, &found) == MULCIBER_OK);
  VkPhysicalDeviceVulkan12Features own{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES},
      twin{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceFeatures2 chain{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &own},
      same{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &twin};
  const std::vector<UnplacedFeature> expected = enable(application.asked, &same);
  uint32_t count = 99;
  const MulciberUnplacedFeature* unplaced = nullptr;
  REQUIRE(mulciber_enable_features(c, &found, &chain, &count, &unplaced) == MULCIBER_OK);
  CHECK(own.timelineSemaphore == twin.timelineSemaphore);
  CHECK(own.bufferDeviceAddress == twin.bufferDeviceAddress);
  CHECK(own.shaderFloat16 == twin.shaderFloat16);
  REQUIRE(count == expected.size());
  for (uint32_t i = 0; i < count; ++i) {
    CHECK(unplaced[i].size == sizeof(MulciberUnplacedFeature));
    CHECK(unplaced[i].name == expected[i].name);
    REQUIRE(unplaced[i].structure_count == expected[i].structures.size());
    for (uint32_t k = 0; k < unplaced[i].structure_count; ++k)
      CHECK(unplaced[i].structures[k] == expected[i].structures[k]);
  }
  // The requirements hold after the call, which can be made for another chain.
  CHECK(found.requirements[0].name == application.asked.list[0].name);

  const auto refused = [&](const MulciberRequirements* from, VkPhysicalDeviceFeatures2* to,
                           uint32_t* of, const MulciberUnplacedFeature** list) {
    CHECK(mulciber_enable_features(c, from, to, of, list) == MULCIBER_ERROR_SETTING);
    return context.message();
  };
  CHECK_THAT(refused(nullptr, &chain, &count, &unplaced),
             ContainsSubstring("MulciberRequirements: is NULL"));
  CHECK(count == 0);
  CHECK(unplaced == nullptr);
  CHECK_THAT(refused(&found, nullptr, &count, &unplaced), ContainsSubstring("features: is NULL"));
  CHECK_THAT(refused(&found, &chain, nullptr, &unplaced),
             ContainsSubstring("unplaced_count: is NULL"));
  CHECK_THAT(refused(&found, &chain, &count, nullptr), ContainsSubstring("unplaced: is NULL"));
  const MulciberRequirements empty = {sizeof(empty)};
  CHECK_THAT(refused(&empty, &chain, &count, &unplaced),
             ContainsSubstring("MulciberRequirements::features: is NULL"));
}
