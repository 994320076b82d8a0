#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <thread>

#include "conformance/background_load.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "runtime/device_features.h"
#include "runtime/pipeline.h"
#include "runtime/queue_families.h"
#include "runtime/queue_priority.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/support.h"

using namespace mulciber;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

// Fills a cache file by making one pipeline.
void use_a_pipeline(Device& device) {
  ProgramBuilder builder(device, "one");
  Tensor x = builder.activation(Shape{16});
  builder.keep_from_start(x);
  builder.keep(add(builder, x, x));
  builder.build().run();
}

}  // namespace

TEST_CASE("A device is chosen by index, by name, or as the best") {
  std::vector<Capabilities> all = Device::enumerate(options_from_environment());
  REQUIRE_FALSE(all.empty());
  // Software devices come last.
  for (size_t i = 1; i < all.size(); ++i) CHECK(all[i - 1].kind <= all[i].kind);
  CHECK(Device::open(options_from_environment())->capabilities().name == all[0].name);
  DeviceOptions options = options_from_environment();
  options.device = std::to_string(all.size() - 1);
  CHECK(Device::open(options)->capabilities().name == all.back().name);
  options.device = all[0].name.substr(1, 5);
  CHECK(Device::open(options)->capabilities().name == all[0].name);
  options.device = "no such device";
  CHECK_THROWS_WITH(Device::open(options),
                    ContainsSubstring(all[0].name) && ContainsSubstring("no such device"));
  options.device = "99";
  CHECK_THROWS_AS(Device::open(options), DeviceError);
}

TEST_CASE("The environment counts where a program asks for it, and nowhere else") {
  const tests::TemporaryFolder folder;
  const std::pair<const char*, std::string> variables[] = {
      {"MULCIBER_DEVICE", "no such device"},
      {"MULCIBER_LIMITS", "no-subgroup,no-fp16"},
      {"MULCIBER_CACHE", (folder.path() / "cache").string()},
      {"MULCIBER_VALIDATE", "1"},
      {"MULCIBER_DEBUG_LABELS", "1"}};
  std::vector<std::optional<std::string>> before;
  for (const auto& [name, value] : variables) {
    const char* old = std::getenv(name);
    before.push_back(old ? std::optional<std::string>(old) : std::nullopt);
    ::setenv(name, value.c_str(), 1);
  }
  const DeviceOptions asked = options_from_environment({.limits = "shared=16384"});
  const DeviceOptions given =
      options_from_environment({.device = "0", .cache_folder = folder.path().string()});
  CHECK(Device::open({})->capabilities().applied_limits.empty());
  CHECK_FALSE(std::filesystem::exists(folder.path() / "cache"));
  ::setenv("MULCIBER_LIMITS", "no-such-limit", 1);
  CHECK_THROWS_WITH(options_from_environment(),
                    ContainsSubstring("MULCIBER_LIMITS: 'no-such-limit'"));
  for (size_t i = 0; i < std::size(variables); ++i) {
    if (before[i])
      ::setenv(variables[i].first, before[i]->c_str(), 1);
    else
      ::unsetenv(variables[i].first);
  }
  CHECK(asked.device == "no such device");
  CHECK(asked.limits == "no-subgroup,no-fp16,shared=16384");
  CHECK(asked.cache_folder == (folder.path() / "cache").string());
  CHECK(asked.validate);
  CHECK(asked.debug_labels);
  CHECK(given.device == "0");
  CHECK(given.cache_folder == folder.path().string());
}

TEST_CASE("Limits take capabilities away") {
  Capabilities c = Device::enumerate(options_from_environment())[0];
  c.features |=
      kFloat16 | kStorage16 | kCooperativeMatrix | kMatrix16x16x16F16 | kSubgroupArithmetic;
  c.max_storage_range = 1 << 30;
  c.max_shared_memory = 65536;
  apply_limits(c, "no-fp16,storage=1M,shared=32K");
  CHECK_FALSE(c.has(kFloat16));
  CHECK_FALSE(c.has(kCooperativeMatrix));  // requires 16-bit arithmetic
  CHECK_FALSE(c.has(kMatrix16x16x16F16));
  CHECK(c.has(kSubgroupArithmetic));
  CHECK(c.max_storage_range == 1 << 20);
  CHECK(c.max_shared_memory == 32768);
  apply_limits(c, "storage=2M");
  CHECK(c.max_storage_range == 1 << 20);  // a limit never raises
  apply_limits(c, "android-2021");
  CHECK((c.features & 0xffff) == kNothing);  // only traits are left
  CHECK(c.max_storage_buffers == 4);
  CHECK(c.max_invocations == 128);
  CHECK_THROWS_WITH(apply_limits(c, "no-such"),
                    ContainsSubstring("no-such") && ContainsSubstring("no-fp16"));
  CHECK_THROWS_AS(apply_limits(c, "shared=many"), SettingError);
  CHECK_THROWS_AS(apply_limits(c, "shared=0"), SettingError);
  CHECK_THROWS_AS(apply_limits(c, "shared=12X"), SettingError);
}

TEST_CASE("Quirks apply by driver and version") {
  Capabilities c;
  c.driver_id = VK_DRIVER_ID_MESA_LLVMPIPE;
  c.features = kCpu | kBufferAddress;
  auto with_version = [&](std::array<uint32_t, 3> version) {
    Capabilities changed = c;
    changed.driver_version = version;
    apply_quirks(changed);
    return changed.features;
  };
  CHECK_FALSE(with_version({22, 3, 6}) & kFastAddress);
  CHECK(with_version({25, 0, 7}) & kFastAddress);
  CHECK_FALSE(with_version({25, 0, 7}) & kUniformLoads);
  CHECK(with_version({26, 1, 0}) & kUniformLoads);
  c.features = kCpu;  // --limits no-address
  CHECK_FALSE(with_version({26, 1, 0}) & (kFastAddress | kUniformLoads));
}

TEST_CASE("Subgroups on Intel are as wide as a register, and as wide as somebody asks for") {
  Capabilities c;
  c.driver_id = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA;
  c.features = kGpu | kSubgroupSizeControl;
  c.min_subgroup_size = 16, c.max_subgroup_size = c.subgroup_size = 32;
  apply_quirks(c);
  CHECK(c.subgroup_size == 16);
  apply_limits(c, "subgroup=32");
  CHECK(c.subgroup_size == 32);
  apply_limits(c, "subgroup=8");  // the device has no such size
  CHECK(c.subgroup_size == 16);
  c.features = kGpu;  // a single size
  apply_limits(c, "subgroup=32");
  CHECK(c.subgroup_size == 16);
}

TEST_CASE("Every row that a quirk denies exists, and an undenied one remains for its op") {
  Capabilities c;
  for (VkDriverId driver : {VK_DRIVER_ID_MESA_LLVMPIPE, VK_DRIVER_ID_GOOGLE_SWIFTSHADER}) {
    for (uint32_t major = 0; major < 30; ++major) {
      c.driver_id = driver;
      c.driver_version = {major, 0, 0};
      apply_quirks(c);
    }
  }
  REQUIRE_FALSE(c.denied_rows.empty());
  for (const std::string& id : c.denied_rows) {
    INFO(id);
    const Kernel* row = find_kernel(id);
    REQUIRE(row);
    CHECK(row->made_for != kAnyDevice);  // rows for any device remain
  }
}

TEST_CASE("A lost device stays lost and says so") {
  auto device = Device::open(options_from_environment());
  CHECK_THROWS_AS(device->check(VK_ERROR_DEVICE_LOST, "vkQueueSubmit"), DeviceError);
  auto lost = [](const DeviceError& error) { return error.kind() == DeviceError::Kind::kLost; };
  CHECK_THROWS_MATCHES(device->memory().allocate(16, MemoryUsage::kActivations), DeviceError,
                       Catch::Matchers::Predicate<DeviceError>(lost));
  CHECK_THROWS_MATCHES(device->submit({}), DeviceError,
                       Catch::Matchers::Predicate<DeviceError>(lost));
  CHECK_THROWS_MATCHES(device->wait(1), DeviceError, Catch::Matchers::Predicate<DeviceError>(lost));
}

TEST_CASE("A device that does not answer in time is lost, and can be closed") {
  CHECK(tuning_of(DeviceKind::kSoftware).hang_seconds >
        tuning_of(DeviceKind::kDiscrete).hang_seconds);
  DeviceOptions options = options_from_environment();
  options.hang_seconds = 1e-9;
  auto device = Device::open(options);
  ProgramBuilder builder(*device, "slow");
  Tensor x = builder.activation({512, 512}, DataType::kF32);
  Tensor w = builder.activation({512, 512}, DataType::kF32);
  builder.keep(matmul(builder, x, w));
  Program program = builder.build();
  CHECK_THROWS_WITH(program.run(), ContainsSubstring("did not finish a submission within 1e-09 s"));
  CHECK_THROWS_WITH(program.run(), ContainsSubstring("lost earlier"));
  // The device may still be running: the program's destructor waits for that.
}

TEST_CASE("Bytes survive the way to the device and back") {
  for (const char* limits : {"", "no-host-visible"}) {
    auto device = Device::open(options_from_environment({.limits = limits}));
    // The largest sizes exceed the staging ring.
    for (size_t size : {1u, 3u, 4096u, 9u << 20, (24u << 20) + 5}) {
      std::vector<std::byte> sent(size);
      for (size_t i = 0; i < size; ++i) sent[i] = static_cast<std::byte>(i * 2654435761u >> 24);
      Buffer buffer = device->memory().allocate(size, MemoryUsage::kActivations);
      if (*limits) CHECK(buffer.view().mapped == nullptr);
      upload(*device, buffer.view(), sent);
      CHECK(download(*device, buffer.view()) == sent);
    }
  }
}

TEST_CASE("Memory is taken in large blocks and handed back") {
  auto device = Device::open(options_from_environment());
  Allocator& memory = device->memory();
  const uint64_t before = memory.used();
  {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 1000; ++i)
      buffers.push_back(memory.allocate(1000 + i, MemoryUsage::kActivations));
    CHECK(memory.reserved() <= 64ull << 20);
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const Buffer& b : buffers) {
      CHECK(b.view().offset % 256 == 0);
      ranges.push_back({b.view().offset, b.view().offset + b.view().size});
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) CHECK(ranges[i - 1].second <= ranges[i].first);
    for (size_t i = 0; i < buffers.size(); i += 2) buffers[i] = Buffer();
    Buffer large = memory.allocate(80ull << 20, MemoryUsage::kActivations);
    CHECK(large.size() == 80ull << 20);
  }
  CHECK(memory.used() == before);
  CHECK(memory.peak() >= 80ull << 20);
}

TEST_CASE("More memory than a device has is refused with the numbers") {
  auto device = Device::open(options_from_environment());
  CHECK_THROWS_AS(device->memory().allocate(1ull << 50, MemoryUsage::kActivations), DeviceError);
}

TEST_CASE("The pipeline cache on disk survives damage") {
  tests::TemporaryFolder folder;
  DeviceOptions options = options_from_environment();
  options.cache_folder = folder.path().string();
  fs::path file;
  {
    auto device = Device::open(options);
    use_a_pipeline(*device);
    file = device->pipelines().file();
  }
  REQUIRE(fs::exists(file));
  std::string whole;
  {
    std::ifstream in(file, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::vector<std::string> damaged = {"", "x", whole.substr(0, whole.size() / 2), whole + "tail",
                                      std::string(whole.size(), '\xff')};
  std::string foreign = whole;
  foreign[8] ^= 1;  // another vendor
  damaged.push_back(foreign);
  for (const std::string& content : damaged) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
    auto device = Device::open(options);
    use_a_pipeline(*device);
  }
  CHECK(fs::file_size(file) == whole.size());  // repaired
}

TEST_CASE("Processes may write the pipeline cache at one time") {
  tests::TemporaryFolder folder;
  DeviceOptions options = options_from_environment();
  options.cache_folder = folder.path().string();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      auto device = Device::open(options);
      use_a_pipeline(*device);
    });
  }
  for (std::thread& thread : threads) thread.join();
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) files += entry.is_regular_file();
  CHECK(files == 1);  // no temporary file is left
}

TEST_CASE("A home that cannot be written to costs only the cache") {
  DeviceOptions options = options_from_environment();
  options.cache_folder = "/proc/no-such-folder";
  auto device = Device::open(options);
  CHECK(device->pipelines().file().empty());
  use_a_pipeline(*device);
}

TEST_CASE("The second queue is of the same family, else of another that computes") {
  const auto family = [](VkQueueFlags flags, uint32_t queues) {
    VkQueueFamilyProperties f{};
    f.queueFlags = flags;
    f.queueCount = queues;
    return f;
  };
  constexpr VkQueueFlags kAll =
      VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
  const auto second = [](std::vector<VkQueueFamilyProperties> families, uint32_t first) {
    return second_compute_queue(families, first);
  };
  CHECK(second({family(kAll, 1)}, 0) == std::nullopt);
  CHECK(second({family(kAll, 16)}, 0) == QueuePlace{0, 1});
  CHECK(second({family(kAll, 1), family(VK_QUEUE_TRANSFER_BIT, 2)}, 0) == std::nullopt);
  CHECK(second({family(kAll, 1), family(VK_QUEUE_TRANSFER_BIT, 2), family(VK_QUEUE_COMPUTE_BIT, 8)},
               0) == QueuePlace{2, 0});
  CHECK(second({family(kAll, 1), family(VK_QUEUE_COMPUTE_BIT, 1)}, 1) == QueuePlace{0, 0});
}

TEST_CASE("A second queue is opened where there is one, and kept busy beside the first") {
  DeviceOptions options = options_from_environment();
  options.second_queue = true;
  std::unique_ptr<Device> device = Device::open(options);
  uint32_t queues = 0;
  for (const auto& family : queue_families(device->instance_vk(), device->physical())) {
    if (computes(family)) queues += family.queueCount;
  }
  CHECK((device->second_queue() != VK_NULL_HANDLE) == (queues > 1));
  CHECK(Device::open(options_from_environment())->second_queue() == VK_NULL_HANDLE);

  conformance::BackgroundLoad load(*device);
  use_a_pipeline(*device);
  // A device with one queue shows at least that the load itself works while nothing else runs.
  VkQueue queue = device->second_queue();
  if (queue == VK_NULL_HANDLE) {
    device->vk().vkGetDeviceQueue(device->handle(), device->queue_family(), 0, &queue);
    conformance::BackgroundLoad alone(*device, queue, device->queue_family());
    while (alone.submissions() < 3) std::this_thread::yield();
  } else {
    while (load.submissions() < 3) use_a_pipeline(*device);
  }
}

TEST_CASE("A priority is asked for where the device has them, and what it grants is told") {
  DeviceOptions options = options_from_environment();
  CHECK(describe(*Device::open(options)).queue_priority == QueuePriority::kDefault);
  options.queue_priority = QueuePriority::kLow;
  const std::unique_ptr<Device> device = Device::open(options);
  const std::vector<std::string> offered =
      device_extensions(device->instance_vk(), device->physical());
  const bool known = std::ranges::any_of(offered, [](const std::string& name) {
    return name == "VK_KHR_global_priority" || name == VK_EXT_GLOBAL_PRIORITY_EXTENSION_NAME;
  });
  // SwiftShader has the extension, but grants only the default priority.
  const QueuePriority granted = describe(*device).queue_priority;
  CHECK((granted == QueuePriority::kDefault || (known && granted == QueuePriority::kLow)));
  use_a_pipeline(*device);
}

TEST_CASE("A priority that is not granted becomes the next lower") {
  // The highest priority that the driver allows, and the priorities it was asked for.
  static std::vector<VkQueueGlobalPriorityEXT> asked;
  static VkQueueGlobalPriorityEXT allowed;
  InstanceFunctions vk{};
  vk.vkEnumerateDeviceExtensionProperties = [](VkPhysicalDevice, const char*, uint32_t* count,
                                               VkExtensionProperties* list) {
    if (list) std::strcpy(list[0].extensionName, VK_EXT_GLOBAL_PRIORITY_EXTENSION_NAME);
    *count = 1;
    return VK_SUCCESS;
  };
  vk.vkCreateDevice = [](VkPhysicalDevice, const VkDeviceCreateInfo* info,
                         const VkAllocationCallbacks*, VkDevice*) {
    const auto* global = static_cast<const VkDeviceQueueGlobalPriorityCreateInfoEXT*>(
        info->pQueueCreateInfos[0].pNext);
    CHECK(info->enabledExtensionCount == (global ? 1 : 0));
    if (!global) return VK_SUCCESS;
    asked.push_back(global->globalPriority);
    return global->globalPriority <= allowed ? VK_SUCCESS : VK_ERROR_NOT_PERMITTED_EXT;
  };
  const VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  const auto granted = [&](QueuePriority wanted, VkQueueGlobalPriorityEXT most) {
    asked.clear();
    allowed = most;
    VkDevice device = VK_NULL_HANDLE;
    CHECK(create_with_priority(vk, VK_NULL_HANDLE, info, &wanted, &device) == VK_SUCCESS);
    return wanted;
  };
  CHECK(granted(QueuePriority::kRealtime, VK_QUEUE_GLOBAL_PRIORITY_REALTIME_EXT) ==
        QueuePriority::kRealtime);
  CHECK(granted(QueuePriority::kRealtime, VK_QUEUE_GLOBAL_PRIORITY_HIGH_EXT) ==
        QueuePriority::kHigh);
  CHECK(asked.size() == 2);
  CHECK(granted(QueuePriority::kRealtime, VK_QUEUE_GLOBAL_PRIORITY_MEDIUM_EXT) ==
        QueuePriority::kDefault);
  CHECK(granted(QueuePriority::kLow, VK_QUEUE_GLOBAL_PRIORITY_MEDIUM_EXT) == QueuePriority::kLow);
  CHECK(granted(QueuePriority::kDefault, VK_QUEUE_GLOBAL_PRIORITY_LOW_EXT) ==
        QueuePriority::kDefault);
  CHECK(asked.empty());
}
