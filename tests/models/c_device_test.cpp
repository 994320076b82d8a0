// Devices and requirements in C: reports are those of C++.
#include <limits>
#include <string>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/device.h"
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
  CHECK(report.kind == static_cast<MulciberDeviceKind>(expected.kind));
  CHECK((report.software != 0) == (report.kind == MULCIBER_DEVICE_SOFTWARE));
  CHECK(report.api_version == expected.api_version);
  CHECK(VK_API_VERSION_MAJOR(report.api_version) == 1);

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

TEST_CASE("Devices that C lists and opens are those of C++") {
  const Context context;
  MulciberContext* c = context.handle;
  MulciberOpenDeviceInfo info = {sizeof(info)};
  info.from_environment = 1;
  MulciberResult* result = nullptr;
  uint32_t count = 0;
  const MulciberDeviceReport* devices = nullptr;
  REQUIRE(mulciber_list_devices(c, &info, &result, &count, &devices) == MULCIBER_OK);
  const std::vector<DeviceDescription> expected = list_devices(options_from_environment());
  REQUIRE(count == expected.size());
  for (uint32_t i = 0; i < count; ++i) {
    CHECK(devices[i].size == sizeof(MulciberDeviceReport));
    CHECK(devices[i].name == expected[i].name);
    CHECK(devices[i].driver == expected[i].driver);
    CHECK((devices[i].software != 0) == expected[i].software);
    CHECK(devices[i].memory_bytes > 0);
    CHECK(devices[i].kind == static_cast<MulciberDeviceKind>(expected[i].kind));
    CHECK(devices[i].api_version == expected[i].api_version);
  }
  info.from_environment = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string index = std::to_string(i);
    info.device = index.c_str();
    MulciberDevice* device = nullptr;
    REQUIRE(mulciber_create_device(c, &info, &device) == MULCIBER_OK);
    MulciberDeviceReport report = {sizeof(report)};
    REQUIRE(mulciber_describe_device(c, device, &report) == MULCIBER_OK);
    CHECK(std::string(report.name) == devices[i].name);
    CHECK(report.occupancy_priority == 0.5f);
    mulciber_destroy_device(device);
  }
  mulciber_destroy_result(result);
  REQUIRE(mulciber_list_devices(c, nullptr, &result, &count, &devices) == MULCIBER_OK);
  CHECK(count == list_devices().size());
  mulciber_destroy_result(result);
}

TEST_CASE("Options of a device in C reach it, and wrong ones are refused") {
  const Context context;
  MulciberContext* c = context.handle;
  MulciberOpenDeviceInfo info = {sizeof(info)};
  MulciberDevice* device = nullptr;
  info.limits = "shared=16384";
  info.submission_ms = 50;
  info.hang_seconds = 700;
  info.set_occupancy_priority = 1;
  info.occupancy_priority = 0;
  info.queue_priority = MULCIBER_QUEUE_PRIORITY_LOW;
  info.ignore_verdicts = 1;
  info.debug_labels = 1;
  REQUIRE(mulciber_create_device(c, &info, &device) == MULCIBER_OK);
  const DeviceDescription same = describe(*open_device({.limits = "shared=16384",
                                                        .ignore_verdicts = true,
                                                        .queue_priority = QueuePriority::kLow,
                                                        .occupancy_priority = 0,
                                                        .submission_ms = 50,
                                                        .hang_seconds = 700}));
  MulciberDeviceReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_device(c, device, &report) == MULCIBER_OK);
  CHECK(report.queue_priority == static_cast<MulciberQueuePriority>(same.queue_priority));
  CHECK(report.occupancy_priority == same.occupancy_priority);
  mulciber_destroy_device(device);

  const auto refused = [&](const MulciberOpenDeviceInfo& with, MulciberStatus status) {
    device = reinterpret_cast<MulciberDevice*>(&device);
    CHECK(mulciber_create_device(c, &with, &device) == status);
    CHECK(device == nullptr);
    return context.message();
  };
  MulciberOpenDeviceInfo wrong = {sizeof(wrong)};
  wrong.limits = "no-such-limit";
  CHECK_THAT(refused(wrong, MULCIBER_ERROR_SETTING), ContainsSubstring("no-such-limit"));
  wrong = {sizeof(wrong)};
  wrong.set_occupancy_priority = 1;
  for (const float priority : {2.0f, std::numeric_limits<float>::quiet_NaN()}) {
    wrong.occupancy_priority = priority;
    CHECK_THAT(refused(wrong, MULCIBER_ERROR_SETTING), ContainsSubstring("occupancy"));
  }
  wrong = {sizeof(wrong)};
  wrong.device = "no device of that name";
  CHECK_THAT(refused(wrong, MULCIBER_ERROR_UNAVAILABLE), ContainsSubstring("of that name"));
  wrong = {sizeof(wrong)};
  wrong.queue_priority = static_cast<MulciberQueuePriority>(4);
  CHECK_THAT(refused(wrong, MULCIBER_ERROR_SETTING),
             ContainsSubstring("queue_priority: is 4; give one of MulciberQueuePriority"));
  wrong = {4};
  CHECK_THAT(refused(wrong, MULCIBER_ERROR_SETTING), ContainsSubstring("set size to sizeof"));
  CHECK(mulciber_create_device(c, &info, nullptr) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("device: is NULL"));
  uint32_t count = 7;
  MulciberResult* result = nullptr;
  const MulciberDeviceReport* devices = nullptr;
  CHECK(mulciber_list_devices(c, &info, &result, nullptr, &devices) == MULCIBER_ERROR_SETTING);
  CHECK(mulciber_list_devices(c, &info, &result, &count, nullptr) == MULCIBER_ERROR_SETTING);
  CHECK(mulciber_list_devices(c, &info, nullptr, &count, &devices) == MULCIBER_ERROR_SETTING);
  CHECK(mulciber_list_devices(c, &wrong, &result, &count, &devices) == MULCIBER_ERROR_SETTING);
  CHECK(count == 0);
  CHECK(result == nullptr);
}

TEST_CASE("The self-test in C counts what the one in C++ counts") {
  const Context context;
  MulciberContext* c = context.handle;
  const TemporaryFolder folder, other;
  const std::string cache = folder.path().string();
  MulciberOpenDeviceInfo info = {sizeof(info)};
  info.from_environment = 1;
  info.cache_folder = cache.c_str();
  MulciberResult* result = nullptr;
  const MulciberSelfTest* found = nullptr;
  // So little time suffices for no kernel.
  REQUIRE(mulciber_self_test(c, &info, 1e-9, &result, &found) == MULCIBER_OK);
  CHECK(found->size == sizeof(*found));
  CHECK(found->passed == 0);
  CHECK(found->failure_count == 0);
  CHECK(found->untested > 0);
  DeviceOptions options = options_from_environment();
  options.cache_folder = other.path().string();
  CHECK(found->untested == self_test(options, 1e-9).untested);
  mulciber_destroy_result(result);
  CHECK(mulciber_self_test(c, &info, 1e-9, nullptr, &found) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("result: is NULL"));
  CHECK(mulciber_self_test(c, &info, 1e-9, &result, nullptr) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(context.message(), ContainsSubstring("test: is NULL"));
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
