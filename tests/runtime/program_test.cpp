#include <nlohmann/json.hpp>
#include <numeric>

#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "runtime/memory_guard.h"
#include "runtime/op.h"
#include "runtime/profiler.h"
#include "runtime/recorder.h"
#include "runtime/spirv_grid.h"
#include "runtime/spirv_reflection.h"
#include "tests/catch.h"
#include "tests/device.h"

using namespace mulciber;

namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// Computes x + x, then + x again, ...: a value of 1 becomes 1 + steps.
struct Chain {
  Buffer input;
  Tensor output;
  std::unique_ptr<Program> program;

  Chain(Device& device, int layers, int adds_per_layer, uint64_t length = 1000) {
    input = device.memory().allocate(length * 4, MemoryUsage::kActivations);
    std::vector<float> ones(length, 1.0f);
    upload(device, input.view(), bytes_of(ones));
    ProgramBuilder builder(device, "chain");
    Tensor x = input.tensor(Shape{length}, DataType::kF32);
    output = x;
    for (int l = 0; l < layers; ++l) {
      auto scope = builder.layer("layers." + std::to_string(l));
      for (int i = 0; i < adds_per_layer; ++i) output = add(builder, output, x);
    }
    builder.keep(output);
    program = std::make_unique<Program>(builder.build());
  }

  float result(Device& device) {
    std::vector<float> values = download_as<float>(device, program->view(output));
    for (float v : values) CHECK(v == values[0]);
    return values[0];
  }
};

struct Counts {
  uint64_t allocations, command_buffers, descriptor_writes, pipelines;
  explicit Counts(const Counters& c)
      : allocations(c.allocations),
        command_buffers(c.command_buffers),
        descriptor_writes(c.descriptor_writes),
        pipelines(c.pipelines) {}
  bool operator==(const Counts&) const = default;
};

}  // namespace

TEST_CASE("A program computes the same in every replay and records nothing anew") {
  Device& device = tests::shared_device();
  Chain chain(device, 4, 5);
  CHECK(chain.program->layer_count() == 4);
  chain.program->run();
  CHECK(chain.result(device) == 21);
  chain.program->run();

  Counts before(device.counters());
  uint64_t waits = device.counters().cpu_waits, submissions = device.counters().submissions;
  for (int i = 0; i < 10; ++i) chain.program->submit();
  device.wait(chain.program->submit());
  CHECK(Counts(device.counters()) == before);
  CHECK(device.counters().submissions - submissions <= 11 * chain.program->layer_count());
  CHECK(device.counters().cpu_waits - waits <= 11 * chain.program->layer_count());
  CHECK(chain.result(device) == 21);
}

TEST_CASE("Activations of a program share an arena by lifetime") {
  Device& device = tests::shared_device();
  Chain chain(device, 1, 20);
  CHECK(chain.program->plan().arena_bytes == 2 * 4096);
  CHECK(chain.program->plan().unplanned_bytes == 20 * 4096);
}

TEST_CASE("Submissions are bounded by time and results do not depend on it") {
  auto submissions_at = [](double submission_ms) {
    DeviceOptions options = options_from_environment();
    options.submission_ms = submission_ms;
    auto device = Device::open(options);
    Chain chain(*device, 3, 4);
    chain.program->run();
    CHECK(chain.result(*device) == 13);
    return chain.program->last_submission_count();
  };
  CHECK(submissions_at(1e-6) == 12);  // each node has its own submission
  CHECK(submissions_at(1e6) == 1);
}

TEST_CASE("A program records into an application's command buffer") {
  Device& device = tests::shared_device();
  Chain chain(device, 2, 3);
  VkCommandBuffer commands = device.allocate_command_buffer();
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  device.check(device.vk().vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  chain.program->record(commands);
  device.check(device.vk().vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  device.wait(device.submit({&commands, 1}));
  CHECK(chain.result(device) == 7);
  device.free_command_buffers({&commands, 1});
}

TEST_CASE("Hazards follow from byte ranges") {
  auto range = [](uint64_t offset, uint64_t size, Access access) {
    BufferView view;
    view.buffer = reinterpret_cast<VkBuffer>(uintptr_t{16});
    view.offset = offset;
    view.size = size;
    return ResolvedUse{view, access};
  };
  HazardTracker tracker;
  tracker.note({range(0, 256, Access::kRead), range(256, 256, Access::kWrite)});
  CHECK_FALSE(tracker.conflicts({range(0, 256, Access::kRead)}));     // read after read
  CHECK(tracker.conflicts({range(0, 16, Access::kWrite)}));           // write after read
  CHECK(tracker.conflicts({range(500, 100, Access::kRead)}));         // read after write
  CHECK(tracker.conflicts({range(256, 1, Access::kReadWrite)}));      // write after write
  CHECK_FALSE(tracker.conflicts({range(512, 256, Access::kWrite)}));  // beside it
  tracker.clear();
  CHECK_FALSE(tracker.conflicts({range(256, 256, Access::kRead)}));
}

TEST_CASE("Every part of a program has the barriers that its hazards ask for, wherever it begins") {
  Device& device = tests::shared_device();
  ProgramBuilder builder(device, "sums");
  const Tensor x = builder.activation(Shape{256});
  builder.keep_from_start(x);
  const Tensor a = add(builder, x, x), b = add(builder, x, x), c = add(builder, a, b),
               d = add(builder, b, b), e = add(builder, x, d), f = add(builder, c, e);
  builder.keep(add(builder, f, a));
  Program program = builder.build();
  Recording& recording = program.recording();
  const size_t count = program.nodes().size();
  REQUIRE(count == 7);
  const VkCommandBuffer commands = device.allocate_command_buffer();
  for (size_t first = 0; first < count; ++first) {
    for (size_t last = first + 1; last <= count; ++last) {
      size_t barriers = 1;  // each part begins with one
      HazardTracker hazards;
      for (size_t i = first; i < last; ++i) {
        std::vector<ResolvedUse> uses;
        for (const BufferUse& use : program.nodes()[i].buffers)
          uses.push_back({program.view(use.tensor), use.access});
        if (hazards.conflicts(uses)) {
          ++barriers;
          hazards.clear();
        }
        hazards.note(uses);
      }
      const size_t before = recording.barrier_count();
      VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
      device.check(device.vk().vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
      recording.record(commands, first, last);
      device.check(device.vk().vkEndCommandBuffer(commands), "vkEndCommandBuffer");
      INFO("nodes " << first << " to " << last);
      CHECK(recording.barrier_count() - before == barriers);
    }
  }
  device.free_command_buffers({&commands, 1});
}

TEST_CASE("A wrong shape is refused with the layer's name") {
  Device& device = tests::shared_device();
  ProgramBuilder builder(device, "broken");
  auto scope = builder.layer("encoder");
  auto inner = builder.scope("fc1");
  Tensor x = builder.activation(Shape{4, 8}), w = builder.activation(Shape{5, 9});
  CHECK_THROWS_WITH(matmul(builder, x, w), Catch::Matchers::ContainsSubstring("encoder.fc1"));
  CHECK_THROWS_AS(matmul(builder, x, w), ShapeError);
}

TEST_CASE("The profiler times every node and writes a trace") {
  DeviceOptions options = options_from_environment();
  options.profile = true;
  auto device = Device::open(options);
  Chain chain(*device, 2, 3);
  chain.program->run();
  if (device->capabilities().timestamp_period == 0) {
    WARN("skipped: this device has no timestamps");
    return;
  }
  REQUIRE(device->profiler()->events().size() == 6);
  auto trace = nlohmann::json::parse(device->profiler()->trace_json("test"));
  size_t dispatches = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++dispatches;
    CHECK(event["dur"].get<double>() >= 0);
    CHECK(event["name"].get<std::string>().starts_with("layers."));
  }
  CHECK(dispatches == 6);
  CHECK(device->profiler()->totals().size() == 1);
  CHECK(device->profiler()->totals()[0].dispatches == 6);
  CHECK_THAT(device->profiler()->table(1e9, 1e9), Catch::Matchers::ContainsSubstring("ratio"));
}

TEST_CASE("Grids of any size run on a device that allows few workgroups") {
  const std::unique_ptr<Device> few =
      Device::open(options_from_environment({.limits = "groups=2", .ignore_verdicts = true}));
  REQUIRE(few->capabilities().max_groups == std::array<uint32_t, 3>{2, 2, 2});
  std::vector<float> values(7 * 3 * 60);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 23) / 8;
  const auto run = [&](Device& device) {
    ProgramBuilder builder(device, "program");
    const Tensor x = builder.activation({7, 3, 60});
    builder.keep_from_start(x);
    const Tensor y = softmax(builder, x);  // one workgroup per row
    const Tensor map = attention_map(builder, {y, 0}, {x, 20},
                                     {.heads = 4, .kv_heads = 4, .head_size = 5, .causal = true});
    builder.keep(y);
    builder.keep(map);
    Program program = builder.build();
    upload(device, program.view(x), std::as_bytes(std::span(values)));
    program.run();
    std::vector<float> result = download_as<float>(device, program.view(y));
    const std::vector<float> weights = download_as<float>(device, program.view(map));
    result.insert(result.end(), weights.begin(), weights.end());
    return result;
  };
  const std::vector<float> expected = run(tests::shared_device());
  CHECK(run(*few) == expected);
  // The result is the same in any order of workgroups and subgroups, in a spread grid too.
  for (Device* device : {few.get(), &tests::shared_device()}) {
    for (const Order& order : {Order{Order::kReverse}, Order{Order::kRandom, 3}}) {
      INFO(name_of(order));
      device->pipelines().set_order(order);
      CHECK(run(*device) == expected);
    }
    device->pipelines().set_order({});
  }
}

TEST_CASE("Every row's module can be spread over fewer workgroups") {
  for (const Kernel& kernel : kernels()) {
    if (kernel.spirv.empty()) continue;
    INFO(kernel.id);
    const std::vector<uint32_t> spread = spread_grid(kernel.spirv, {7, 5, 3}, {2, 2, 2});
    const Reflection before = reflect_spirv(kernel.id, kernel.spirv),
                     after = reflect_spirv(kernel.id, spread);
    CHECK(after.buffer_count == before.buffer_count);
    CHECK(after.push_constant_bytes == before.push_constant_bytes);
    CHECK(after.shared_memory_bytes == before.shared_memory_bytes);
  }
  CHECK_THROWS_AS(
      spread_grid(std::vector<uint32_t>{0x07230203, 0x10300, 0, 1, 0}, {7, 5, 3}, {2, 2, 2}),
      KernelError);
}

TEST_CASE("Every row's module can be reordered, and spread after that") {
  for (const Kernel& kernel : kernels()) {
    if (kernel.spirv.empty()) continue;
    INFO(kernel.id);
    for (const Order& order : {Order{Order::kReverse}, Order{Order::kRandom, 7}}) {
      const std::vector<uint32_t> reordered = reorder(kernel.spirv, order, {5, 8});
      CHECK(reordered.size() > kernel.spirv.size());
      for (const auto& module : {reordered, spread_grid(reordered, {7, 5, 3}, {2, 2, 2})}) {
        const Reflection after = reflect_spirv(kernel.id, module);
        CHECK(after.buffer_count == kernel.reflection.buffer_count);
        CHECK(after.push_constant_bytes == kernel.reflection.push_constant_bytes);
        CHECK(after.shared_memory_bytes == kernel.reflection.shared_memory_bytes);
      }
    }
    CHECK(std::ranges::equal(reorder(kernel.spirv, {}, {5, 8}), kernel.spirv));
  }
  CHECK_THROWS_AS(
      reorder(std::vector<uint32_t>{0x07230203, 0x10300, 0, 1, 0}, Order{Order::kReverse}, {5, 8}),
      KernelError);
}

TEST_CASE("Guards notice what is written outside a buffer, and buffers begin as poison") {
  Device& device = tests::shared_device();
  Allocator& memory = device.memory();
  memory.set_guard(512);
  Buffer buffer = memory.allocate(1001, MemoryUsage::kActivations);
  memory.set_guard(0);
  const Buffer other = memory.allocate(1001, MemoryUsage::kActivations);
  CHECK(memory.damage().empty());
  CHECK(download_as<uint32_t>(device, buffer.view())[100] == kPoison);
  upload(device, buffer.view(), std::vector<std::byte>(1001));
  CHECK(memory.damage().empty());

  const auto write_at = [&](int64_t from_start) {
    BufferView view = buffer.view();
    view.offset += static_cast<uint64_t>(from_start);
    if (view.mapped) view.mapped += from_start;
    view.size = 4;
    upload(device, view, std::vector<std::byte>(4));
  };
  SECTION("behind") {
    write_at(1004);
    CHECK(memory.damage() == "wrote 0 bytes behind a buffer of 1001");
  }
  SECTION("before") {
    write_at(-8);
    CHECK(memory.damage() == "wrote 5 bytes before a buffer of 1001");
  }
  // A buffer that is freed has no guards.
  const uint64_t used = memory.used();
  buffer = Buffer();
  CHECK(memory.used() == used - 1024 - 2 * 512);
  CHECK(memory.damage().empty());
}
