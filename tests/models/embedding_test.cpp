// The library inside an application: on its device, in slices, in its command buffers.
#include <atomic>
#include <random>
#include <thread>

#include "runtime/device.h"
#include "runtime/device_features.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

const std::string kText = "The old house stands near the river.";

// Records slices of random budgets until the task is done. The task allocates, compiles and submits
// nothing.
void record_all(Device& device, ApplicationCommands& commands, FrameTask& task,
                std::mt19937& random, uint32_t most_us) {
  const uint64_t allocations = device.counters().allocations,
                 pipelines = device.counters().pipelines,
                 submissions = device.counters().submissions;
  while (!task.done()) {
    FrameSlice slice;
    commands.run([&](VkCommandBuffer buffer) {
      slice = task.record(buffer, static_cast<double>(random() % most_us));
    });
    REQUIRE(slice.number > 0);
    task.completed(slice.number);
  }
  CHECK(device.counters().allocations == allocations);
  CHECK(device.counters().pipelines == pipelines);
  CHECK(device.counters().submissions == submissions);
}

}  // namespace

TEST_CASE("Requirements name what a device offers, and a device made of them has it") {
  VulkanApplication application;
  const Requirements& asked = application.asked;
  CHECK(asked.fits());
  CHECK(asked.features != nullptr);
  bool queue = false;
  for (const Requirement& requirement : asked.list) {
    CHECK_FALSE(requirement.brings.empty());
    if (requirement.required) CHECK(requirement.available);
    queue = queue || requirement.kind == Requirement::Kind::kQueue;
  }
  CHECK(queue);
  const auto adopted = adopt_device(application.lent());
  const std::unique_ptr<Device> opened = Device::open({});
  CHECK(describe(*adopted).name == describe(*opened).name);
  // At Vulkan 1.2, extensions provide everything that the runtime uses except cooperative matrices.
  const FeatureSet both = kFloat16 | kStorage16 | kStorage8 | kBufferAddress | kSubgroupSizeControl;
  CHECK((adopted->capabilities().features & both) == (opened->capabilities().features & both));
}

TEST_CASE("What an application did not enable is not used") {
  VulkanApplication application(false);
  const auto device = adopt_device(application.lent());
  CHECK_FALSE(device->capabilities().has(kFloat16));
  CHECK_FALSE(device->capabilities().has(kStorage16));
  CHECK_FALSE(device->capabilities().has(kBufferAddress));
  CHECK_FALSE(device->capabilities().timeline_semaphores);
  CHECK(Translator(device, bundled_model()).translate(kText).complete);
}

TEST_CASE("A model's memory is told before anything is made") {
  VulkanApplication application;
  const auto model = open_model(bundled_model());
  const Requirements fits = requirements(application.physical, *model);
  CHECK(fits.fits());
  CHECK(fits.memory.weight_bytes > 1'000'000);
  CHECK(fits.memory.key_value_bytes > 0);
  CHECK(fits.memory.context_bytes > fits.memory.key_value_bytes);
  // What is told of texts of 64 tokens is what a translation of such a text is predicted to take.
  GeneratorOptions brief;
  brief.context = 64;
  const MemoryPrediction asked = requirements(application.physical, *model, brief).memory;
  CHECK(asked.weight_bytes == fits.memory.weight_bytes);
  CHECK(asked.context_bytes < fits.memory.context_bytes);
  Translator translator(adopt_device(application.lent()), model);
  std::string text(kText);
  size_t tokens = 0;
  while (tokens <= 56) {
    text += " The house is old.";
    tokens = TranslationTask(translator, text).so_far().source_ids.size();
  }
  REQUIRE(tokens <= 64);
  translator.trim();
  translator.translate(text, {.max_new_tokens = 64});
  const TranslateStatistics& found = translator.statistics();
  const uint64_t taken = found.predicted_device_bytes - found.weight_bytes;
  INFO("told " << asked.context_bytes << ", predicted later " << taken);
  CHECK(asked.context_bytes >= taken * 2 / 3);
  CHECK(asked.context_bytes <= taken * 3 / 2);
  GeneratorOptions little;
  little.load.memory_limit = 1'000'000;
  const Requirements tight = requirements(application.physical, *model, little);
  REQUIRE(tight.obstacles.size() == 1);
  CHECK(tight.obstacles.front().find("1000000") != std::string::npos);
}

TEST_CASE("A device that lacks a handle is refused by name") {
  VulkanApplication application;
  const auto refused = [&](auto damage) {
    ApplicationDevice lent = application.lent();
    damage(lent);
    try {
      adopt_device(lent);
    } catch (const DeviceError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(refused([](ApplicationDevice& lent) { lent.device = VK_NULL_HANDLE; }),
             ContainsSubstring("lacks the device"));
  CHECK_THAT(refused([](ApplicationDevice& lent) { lent.physical.instance = VK_NULL_HANDLE; }),
             ContainsSubstring("lacks the instance"));
  CHECK_THAT(
      refused([](ApplicationDevice& lent) { lent.physical.get_instance_proc_addr = nullptr; }),
      ContainsSubstring("get_instance_proc_addr"));
  CHECK_THAT(refused([](ApplicationDevice& lent) { lent.queue.queue = VK_NULL_HANDLE; }),
             ContainsSubstring("lacks a queue"));
  CHECK_THAT(refused([](ApplicationDevice& lent) { lent.memory_priority = 2; }),
             ContainsSubstring("memory_priority"));
  CHECK_THAT(refused([](ApplicationDevice& lent) { lent.queue.lock = [] {}; }),
             ContainsSubstring("unlock"));
  CHECK_THAT(
      refused([](ApplicationDevice& lent) { lent.physical.api_version = VK_API_VERSION_1_0; }),
      ContainsSubstring("Vulkan 1.0"));
  ApplicationPhysicalDevice nothing;
  CHECK_THROWS_AS(requirements(nothing), DeviceError);
}

TEST_CASE(
    "Slices of any size, recorded by the application or submitted, give the bits of a whole run") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, bundled_model());
  for (const uint32_t beams : {1u, 4u}) {
    const TranslateOptions options = {.beams = beams};
    const Translation whole = translator.translate(kText, options);
    std::mt19937 random(7 + beams);
    ApplicationCommands commands(application);
    {
      TranslationTask task(translator, kText, options);
      record_all(*device, commands, task, random, 3000);
      const Translation cut = task.result();
      CHECK(cut.ids == whole.ids);
      CHECK(cut.score == whole.score);
      CHECK(cut.text == whole.text);
      CHECK(task.text() == whole.text);
    }
    TranslationTask task(translator, kText, options);
    size_t steps = 0;
    while (!task.done()) {
      const FrameStep step = task.step(static_cast<double>(random() % 3000));
      steps += step.slice.number > 0;
      CHECK((step.slice.number == 0) == (step.value == 0));
      if (step.waits) task.wait();
    }
    CHECK(steps > 3);
    CHECK(task.result().ids == whole.ids);
    CHECK(task.result().score == whole.score);
  }
}

TEST_CASE("Two translations go on at once in the slices of one frame") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, bundled_model());
  const std::string other = "He has two dogs and a cat.";
  const std::string first = translator.translate(kText).text,
                    second = translator.translate(other).text;
  TranslationTask a(translator, kText), b(translator, other);
  while (!a.done() || !b.done()) {
    a.step(500);
    b.step(500);
    a.wait();
    b.wait();
  }
  CHECK(a.result().text == first);
  CHECK(b.result().text == second);
}

TEST_CASE("A task that is cancelled ends, and the next one is whole") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, bundled_model());
  const std::string whole = translator.translate(kText).text;
  {
    TranslationTask task(translator, kText);
    task.step(1);
    task.cancel();
    task.wait();
    CHECK(task.done());
    CHECK_FALSE(task.result().complete);
  }
  TranslationTask task(translator, kText);
  CHECK_THROWS_AS(task.result(), SettingError);
  while (!task.done()) {
    task.step(1e6);
    task.wait();
  }
  CHECK(task.result().text == whole);
  CHECK(TranslationTask(translator, " ").done());
}

TEST_CASE("Every submission passes the application's function, between lock and unlock") {
  VulkanApplication application;
  ApplicationDevice lent = application.lent();
  int locks = 0, held = 0, submissions = 0;
  lent.queue.lock = [&] {
    ++locks;
    ++held;
  };
  lent.queue.unlock = [&] { --held; };
  lent.queue.submit = [&](VkQueue queue, const VkSubmitInfo& info, VkFence fence) {
    CHECK(held == 1);
    ++submissions;
    return application.vk.vkQueueSubmit(queue, 1, &info, fence);
  };
  const auto device = adopt_device(lent);
  CHECK(Translator(device, bundled_model()).translate(kText).complete);
  CHECK(submissions > 0);
  CHECK(locks == submissions);
  CHECK(static_cast<uint64_t>(submissions) == device->counters().submissions);
}

TEST_CASE(
    "A submission that fails or throws unlocks the queue, and the next step makes up for it") {
  VulkanApplication application;
  ApplicationDevice lent = application.lent();
  struct Refused {};
  enum class Answer { kSubmits, kFails, kThrows } answer = Answer::kSubmits;
  int held = 0;
  lent.queue.lock = [&] { ++held; };
  lent.queue.unlock = [&] { --held; };
  lent.queue.submit = [&](VkQueue queue, const VkSubmitInfo& info, VkFence fence) {
    CHECK(held == 1);
    if (answer == Answer::kThrows) throw Refused();
    if (answer == Answer::kFails) return VK_ERROR_OUT_OF_HOST_MEMORY;
    return application.vk.vkQueueSubmit(queue, 1, &info, fence);
  };
  Translator translator(adopt_device(lent), bundled_model());
  const Translation whole = translator.translate(kText);
  TranslationTask task(translator, kText);
  uint64_t number = 0;
  for (int i = 0; !task.done(); ++i) {
    answer = i % 4 == 1 ? Answer::kThrows : i % 4 == 3 ? Answer::kFails : Answer::kSubmits;
    if (answer == Answer::kThrows) {
      CHECK_THROWS_AS(task.step(1000), Refused);
    } else if (answer == Answer::kFails) {
      CHECK_THROWS_AS(task.step(1000), DeviceError);
    } else {
      CHECK(task.step(1000).slice.number == ++number);
    }
    CHECK(held == 0);
    task.wait();
  }
  CHECK(number > 3);
  CHECK(task.result().ids == whole.ids);
  CHECK(task.result().score == whole.score);
  answer = Answer::kThrows;
  CHECK_THROWS_AS(translator.translate(kText), Refused);
  CHECK(held == 0);
  answer = Answer::kSubmits;
  CHECK(translator.translate(kText).text == whole.text);
}

TEST_CASE("A task's slices are recorded or submitted, and never both at once") {
  VulkanApplication application;
  Translator translator(adopt_device(application.lent()), bundled_model());
  ApplicationCommands commands(application);
  TranslationTask task(translator, kText);
  const auto refusal = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const SettingError& error) {
      return error.what();
    }
    return "";
  };
  using Catch::Matchers::ContainsSubstring;
  while (!task.done()) {
    FrameSlice slice;
    commands.run([&](VkCommandBuffer buffer) { slice = task.record(buffer, 1000); });
    CHECK_THAT(refusal([&] { task.step(1000); }), ContainsSubstring("slices of record()"));
    task.completed(slice.number);
    if (task.done()) break;
    CHECK(task.step(1000).slice.number == slice.number + 1);
    commands.drop([&](VkCommandBuffer buffer) {
      CHECK_THAT(refusal([&] { task.record(buffer, 1000); }),
                 ContainsSubstring("slices of step()"));
    });
    task.wait();
  }
  CHECK(task.result().text == translator.translate(kText).text);
}

TEST_CASE(
    "Memory comes from the application's allocator, up to its budget, and all of it goes back") {
  VulkanApplication application;
  ApplicationDevice lent = application.lent();
  struct Given {
    int now = 0;
    uint64_t weights = 0, others = 0;
  } given;
  VkPhysicalDeviceMemoryProperties properties;
  application.instance_vk.vkGetPhysicalDeviceMemoryProperties(application.physical.physical_device,
                                                              &properties);
  lent.memory_priority = 0.25f;
  lent.allocator.allocate = [&](const MemoryRequest& request, ApplicationMemory* memory) {
    CHECK(request.priority == 0.25f);
    VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    if (request.device_address) info.pNext = &flags;
    info.allocationSize = request.requirements.size;
    for (uint32_t i = 0; i < properties.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags has = properties.memoryTypes[i].propertyFlags;
      if (!(request.requirements.memoryTypeBits >> i & 1)) continue;
      if ((has & request.required) != request.required) continue;
      info.memoryTypeIndex = i;
      const VkResult result =
          application.vk.vkAllocateMemory(application.device, &info, nullptr, &memory->memory);
      if (result != VK_SUCCESS) return result;
      ++given.now;
      (request.usage == MemoryUsage::kWeights ? given.weights : given.others) +=
          info.allocationSize;
      if (has & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
        return application.vk.vkMapMemory(application.device, memory->memory, 0, VK_WHOLE_SIZE, 0,
                                          &memory->mapped);
      return VK_SUCCESS;
    }
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  };
  lent.allocator.free = [&](const ApplicationMemory& memory) {
    --given.now;
    application.vk.vkFreeMemory(application.device, memory.memory, nullptr);
  };
  {
    const auto device = adopt_device(lent);
    Translator translator(device, bundled_model());
    CHECK(translator.translate(kText).complete);
    CHECK(given.now > 0);
    CHECK(given.weights >= translator.statistics().weight_bytes);
    CHECK(given.others > 0);
    CHECK(device->memory().reserved() >= given.weights);
  }
  CHECK(given.now == 0);

  lent.memory_budget = 1 << 20;
  const auto small = adopt_device(lent);
  CHECK_THROWS_AS(Translator(small, bundled_model()), DeviceError);
  CHECK(given.now == 0);
}

TEST_CASE("An allocator that gives less than it says is refused in words, and gets all back") {
  VulkanApplication application;
  ApplicationDevice lent = application.lent();
  struct Refused {};
  enum class Gives { kAll, kNoMemory, kNoAddress, kException } gives = Gives::kAll;
  int given = 0;
  lent.allocator.allocate = [&](const MemoryRequest& request, ApplicationMemory* memory) {
    if (gives == Gives::kException) throw Refused();
    if (gives == Gives::kNoMemory) return VK_SUCCESS;
    const VkResult result = allocate_lent(application, request, memory);
    if (result == VK_SUCCESS) ++given;
    if (gives == Gives::kNoAddress) memory->mapped = nullptr;
    return result;
  };
  lent.allocator.free = [&](const ApplicationMemory& memory) {
    --given;
    application.vk.vkFreeMemory(application.device, memory.memory, nullptr);
  };
  const auto device = adopt_device(lent);
  const auto refusal = [&](MemoryUsage usage) -> std::string {
    try {
      device->memory().allocate(1 << 20, usage);
    } catch (const DeviceError& error) {
      if (error.kind() == DeviceError::Kind::kFailed) return error.what();
    }
    return "";
  };
  using Catch::Matchers::ContainsSubstring;
  gives = Gives::kNoMemory;
  for (const MemoryUsage usage : {MemoryUsage::kWeights, MemoryUsage::kReadback})
    CHECK_THAT(refusal(usage), ContainsSubstring("gave no memory for"));
  gives = Gives::kNoAddress;
  for (const MemoryUsage usage : {MemoryUsage::kStaging, MemoryUsage::kReadback})
    CHECK_THAT(refusal(usage), ContainsSubstring("without a mapped address"));
  gives = Gives::kException;
  CHECK_THROWS_AS(device->memory().allocate(1 << 20, MemoryUsage::kWeights), Refused);
  CHECK(given == 0);
  CHECK(device->memory().reserved() == 0);
  // What the CPU does not use needs no address.
  gives = Gives::kNoAddress;
  CHECK(refusal(MemoryUsage::kWeights).empty());
  gives = Gives::kAll;
  CHECK(Translator(device, bundled_model()).translate(kText).complete);
}

TEST_CASE("Nobody waits for a submission with a lock that submitting needs") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  Translator translator(device, bundled_model());
  const std::string whole = translator.translate(kText).text;
  std::atomic<bool> stop{false};
  std::thread waits([&] {
    while (!stop) device->wait_idle();
  });
  for (int i = 0; i < 3; ++i) CHECK(translator.translate(kText).text == whole);
  stop = true;
  waits.join();
}

TEST_CASE("A pipeline cache in the application's hands spares a later run the compiling") {
  VulkanApplication application;
  std::vector<std::byte> cache;
  {
    const auto device = adopt_device(application.lent());
    Translator(device, bundled_model()).translate(kText);
    cache = pipeline_cache(*device);
    CHECK_FALSE(cache.empty());
  }
  ApplicationDevice lent = application.lent();
  lent.pipeline_cache = cache;
  CHECK(Translator(adopt_device(lent), bundled_model()).translate(kText).complete);
  lent.pipeline_cache = std::vector<std::byte>(77, std::byte{1});  // damaged: ignored
  CHECK(Translator(adopt_device(lent), bundled_model()).translate(kText).complete);
}

TEST_CASE("An answer in slices is the answer in one piece, and leaves the same context") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  const std::string prompt = "The red hammer and the blue nails of the old house";
  const auto check_turns = [&](const GenerateOptions& options) {
    TextGenerator whole(device, small_decoder().string(), {.context = 96});
    TextGenerator cut(device, small_decoder().string(), {.context = 96});
    const Generation first = whole.generate(prompt, options);
    std::mt19937 random(3);
    ApplicationCommands commands(application);
    const auto recorded = [&](const std::string& text) {
      GenerateOptions streams = options;
      std::string streamed;
      streams.on_text = [&](std::string_view piece) { streamed += piece; };
      GenerationTask task(cut, text, streams);
      record_all(*device, commands, task, random, 800);
      const Generation result = task.result();
      CHECK(streamed == result.text);
      return result;
    };
    const Generation sliced = recorded(prompt);
    CHECK(sliced.ids == first.ids);
    CHECK(sliced.text == first.text);
    CHECK(sliced.end == first.end);
    // The next turn begins with the tokens that both contexts hold.
    const std::string next = prompt + first.text + " and then";
    const Generation second = whole.generate(next, options);
    CHECK(cut.generate(next, options).ids == second.ids);
    CHECK(cut.statistics().reused_tokens == whole.statistics().reused_tokens);
    CHECK(recorded(next + second.text).ids == whole.generate(next + second.text, options).ids);
  };
  check_turns({.max_new_tokens = 12, .ignore_end = true});
  check_turns(
      {.sampling = Sampling{.temperature = 1, .top_k = 40, .seed = 5}, .max_new_tokens = 9});
  const std::string all = TextGenerator(device, small_decoder().string(), {.context = 96})
                              .generate(prompt, {.max_new_tokens = 12, .ignore_end = true})
                              .text;
  check_turns({.max_new_tokens = 12, .stop = {all.substr(all.size() / 2, 3)}, .ignore_end = true});
}

TEST_CASE("An answer that is cancelled in the middle of its prompt leaves a context that goes on") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  const std::string prompt = "The red hammer and the blue nails of the old house";
  TextGenerator generator(device, small_decoder().string(), {.context = 64});
  const GenerateOptions options = {.max_new_tokens = 6, .ignore_end = true};
  for (int steps = 1; steps < 12; steps += 3) {
    GenerationTask task(generator, prompt, options);
    for (int i = 0; i < steps; ++i) {
      task.step(1);
      task.wait();
    }
    task.cancel();
    task.wait();
    REQUIRE(task.done());
    CHECK(task.result().end == GenerateEnd::kCancelled);
  }
  TextGenerator fresh(device, small_decoder().string(), {.context = 64});
  CHECK(generator.generate(prompt, options).ids == fresh.generate(prompt, options).ids);
  CHECK_THROWS_AS(GenerationTask(generator, prompt, {.shift = true}), SettingError);
}

TEST_CASE("A conversation goes on on another device when its own is lost") {
  const std::string prompt = "The red hammer and the blue nails";
  const GenerateOptions options = {.max_new_tokens = 8, .ignore_end = true};
  std::vector<std::byte> kept;
  std::string said;
  {
    VulkanApplication application;
    ApplicationDevice lent = application.lent();
    bool lost = false;
    lent.queue.submit = [&](VkQueue queue, const VkSubmitInfo& info, VkFence fence) {
      return lost ? VK_ERROR_DEVICE_LOST : application.vk.vkQueueSubmit(queue, 1, &info, fence);
    };
    TextGenerator generator(adopt_device(lent), small_decoder().string(), {.context = 64});
    said = prompt + generator.generate(prompt, options).text;
    kept = generator.save_cache();
    lost = true;
    const auto kind_of_failure = [&] {
      try {
        generator.generate(said, options);
      } catch (const DeviceError& error) {
        return error.kind();
      }
      return DeviceError::Kind::kFailed;
    };
    CHECK(kind_of_failure() == DeviceError::Kind::kLost);
    lost = false;  // the library still counts the device as lost
    CHECK(kind_of_failure() == DeviceError::Kind::kLost);
  }
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  TextGenerator generator(device, small_decoder().string(), {.context = 64});
  CHECK(generator.load_cache(kept) > 8);
  const Generation found = generator.generate(said, options);
  CHECK(generator.statistics().reused_tokens > 8);
  TextGenerator whole(device, small_decoder().string(), {.context = 64});
  whole.generate(prompt, options);
  CHECK(found.ids == whole.generate(said, options).ids);
}
