// How slices fill a budget: the expected times of dispatches, and how timestamps correct them.
#include "runtime/slices.h"

#include <string_view>

#include "ops/elementwise.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/vulkan_application.h"

using namespace mulciber;

namespace {

/// Several runs of one program in sequence.
class Runs : public StageSource {
 public:
  Runs(Program& program, uint64_t count) : program_(program), count_(count) {}
  bool next(Stage& stage) override {
    if (given_ == count_) return false;
    ++given_;
    stage.program = &program_;
    return true;
  }
  void ended(uint64_t stages) override { ended_ = stages; }
  bool done() const override { return ended_ == count_; }

 private:
  Program& program_;
  uint64_t count_, given_ = 0, ended_ = 0;
};

Program additions(Device& device, const Buffer& values, int count) {
  ProgramBuilder builder(device, "additions");
  const Tensor x = values.tensor({values.size() / 4}, DataType::kF32);
  Tensor sum = x;
  for (int i = 0; i < count; ++i) sum = add(builder, sum, x);
  builder.keep(sum);
  return builder.build();
}

/// Records, submits and awaits a slice as an application does.
Slice run_recorded(Device& device, SlicedRun& run, double budget_us) {
  const DeviceFunctions& vk = device.vk();
  const VkCommandBuffer commands = device.allocate_command_buffer();
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  REQUIRE(vk.vkBeginCommandBuffer(commands, &begin) == VK_SUCCESS);
  const Slice slice = run.record(commands, budget_us);
  REQUIRE(vk.vkEndCommandBuffer(commands) == VK_SUCCESS);
  device.wait(device.submit({&commands, 1}));
  run.completed(slice.number);
  device.free_command_buffers({&commands, 1});
  return slice;
}

PFN_vkGetPhysicalDeviceQueueFamilyProperties real_families = nullptr;

/// Reports two families: the device's first family without timestamps, then the same with
/// timestamps.
void two_families(VkPhysicalDevice physical, uint32_t* count, VkQueueFamilyProperties* families) {
  if (!families) {
    *count = 2;
    return;
  }
  uint32_t all = 0;
  real_families(physical, &all, nullptr);
  std::vector<VkQueueFamilyProperties> real(all);
  real_families(physical, &all, real.data());
  families[0] = families[1] = real[0];
  families[0].timestampValidBits = 0;
  families[1].timestampValidBits = 64;
}

/// Reports two families, the second of which only copies.
void second_family_copies(VkPhysicalDevice physical, uint32_t* count,
                          VkQueueFamilyProperties* families) {
  two_families(physical, count, families);
  if (families) families[1].queueFlags = VK_QUEUE_TRANSFER_BIT;
}

PFN_vkVoidFunction address_with_a_family_that_copies(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction real = vulkan_loader()(instance, name);
  if (std::string_view(name) != "vkGetPhysicalDeviceQueueFamilyProperties") return real;
  real_families = reinterpret_cast<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(real);
  return reinterpret_cast<PFN_vkVoidFunction>(second_family_copies);
}

PFN_vkVoidFunction address_with_two_families(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction real = vulkan_loader()(instance, name);
  if (std::string_view(name) != "vkGetPhysicalDeviceQueueFamilyProperties") return real;
  real_families = reinterpret_cast<PFN_vkGetPhysicalDeviceQueueFamilyProperties>(real);
  return reinterpret_cast<PFN_vkVoidFunction>(two_families);
}

}  // namespace

TEST_CASE("A queue whose family has no timestamps is not asked for them") {
  tests::VulkanApplication application;
  ApplicationDevice lent = application.lent();
  REQUIRE(lent.queue.family == 0);
  CHECK(adopt_device(lent)->capabilities().timestamp_period > 0);
  lent.physical.get_instance_proc_addr = address_with_two_families;
  const auto device = adopt_device(lent);
  CHECK(device->capabilities().timestamp_period == 0);
  const Buffer values = device->memory().allocate(4096, MemoryUsage::kActivations);
  Program program = additions(*device, values, 20);
  const double guess = program.recording().node_us(19);
  SlicedRun run(*device, std::make_unique<Runs>(program, 5));
  while (!run.done()) {
    run.step(20 * guess);
    run.wait();
  }
  CHECK(program.recording().node_us(19) == guess);
}

TEST_CASE("A queue of a family that does not exist, or cannot compute, is refused") {
  tests::VulkanApplication application;
  ApplicationDevice lent = application.lent();
  lent.physical.get_instance_proc_addr = address_with_a_family_that_copies;
  const auto refusal = [&](uint32_t family) -> std::string {
    lent.queue.family = family;
    try {
      adopt_device(lent);
    } catch (const DeviceError& error) {
      if (error.kind() == DeviceError::Kind::kUnavailable) return error.what();
    }
    return "";
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(refusal(1), ContainsSubstring("of family 1, which cannot compute"));
  CHECK_THAT(refusal(99), ContainsSubstring("of family 99, and there are 2 families"));
  CHECK(refusal(0).empty());
}

TEST_CASE("A slice holds what its budget holds by expectation, and at least one dispatch") {
  Device& device = tests::shared_device();
  const Buffer values = device.memory().allocate(4096, MemoryUsage::kActivations);
  Program program = additions(device, values, 20);
  SlicedRun run(device, std::make_unique<Runs>(program, 2));
  const Slice first = run_recorded(device, run, 0);
  CHECK(first.dispatches == 1);
  uint32_t dispatches = first.dispatches;
  while (!run.done()) {
    const double budget = 3 * first.estimated_us;
    const Slice slice = run_recorded(device, run, budget);
    CHECK((slice.dispatches == 1 || slice.estimated_us <= budget));
    dispatches += slice.dispatches;
  }
  CHECK(dispatches == 40);
}

TEST_CASE("What slices took corrects what is expected of the next, whoever submits them") {
  Device& device = tests::shared_device();
  if (device.capabilities().timestamp_period <= 0) {
    WARN("skipped: the device has no timestamps");
    return;
  }
  const Buffer values = device.memory().allocate(4096, MemoryUsage::kActivations);
  for (const bool recorded : {true, false}) {
    Program program = additions(device, values, 20);
    const double guess = program.recording().node_us(19);
    SlicedRun run(device, std::make_unique<Runs>(program, 30));
    for (int i = 0; !run.done(); ++i) {
      const double budget = 10 * program.recording().node_us(19);
      if (recorded) {
        run_recorded(device, run, budget);
      } else {
        run.step(budget);
        run.wait();
      }
      REQUIRE(i < 1000);
    }
    // A slice times few of its dispatches, but in the end all were timed.
    for (size_t node = 0; node < 20; ++node) {
      CHECK(program.recording().node_us(node) != guess);
      CHECK(program.recording().node_us(node) >= 0);
    }
    CHECK(device.slice_stretch() >= 1);
  }
}
