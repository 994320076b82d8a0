// Calls of operator new that record() makes on the thread of a frame: none after a task's first.
// This program replaces operator new, so it has no other tests.
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tests/application_destination.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/small_marian.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"
#include "tests/wrapped_device.h"

#include "mulciber/embedding.h"
#include "mulciber/image_task.h"

using namespace mulciber;
using namespace mulciber::tests;

namespace {

thread_local bool t_counts = false;
thread_local size_t t_allocations = 0;
void* volatile seen = nullptr;  // keeps compilers from leaving allocations out

}  // namespace

// Inlined into a caller, the one would seem to free what the other did not allocate.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (t_counts) ++t_allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

/// Calls of operator new within a scope, on its thread.
class CountedAllocations {
 public:
  CountedAllocations() {
    t_allocations = 0;
    t_counts = true;
  }
  ~CountedAllocations() { t_counts = false; }
  size_t so_far() const { return t_allocations; }
};

/// Commands that a driver records. What it allocates for them is its own.
template <typename Name, typename Function>
struct UncountedCommand {
  static constexpr bool kWraps = false;
};
template <typename Name, typename... Arguments>
struct UncountedCommand<Name, void(VKAPI_PTR*)(VkCommandBuffer, Arguments...)> {
  static constexpr bool kWraps = true;
  static inline void(VKAPI_PTR* original)(VkCommandBuffer, Arguments...) = nullptr;
  static VKAPI_ATTR void VKAPI_CALL call(VkCommandBuffer commands, Arguments... arguments) {
    const bool counts = std::exchange(t_counts, false);
    original(commands, arguments...);
    t_counts = counts;
  }
};

ApplicationDevice uncounted_driver(const VulkanApplication& application) {
  return WrappedDevice<UncountedCommand>::wrap(application.lent());
}

/// Allocations of each frame's record(), of a task that runs to its end.
std::vector<size_t> allocations_of(const VulkanApplication& application, FrameTask& task,
                                   double budget_us) {
  std::vector<size_t> found;
  ApplicationCommands commands(application);
  while (!task.done()) {
    FrameSlice slice;
    size_t allocations = 0;
    commands.run([&](VkCommandBuffer buffer) {
      const CountedAllocations counted;
      slice = task.record(buffer, budget_us);
      allocations = counted.so_far();
    });
    task.completed(slice.number);
    found.push_back(allocations);
  }
  return found;
}

/// Frames of one dispatch each, and frames with as much as there is.
constexpr double kBudgets[] = {0, 1e9};

void check_frames(const std::vector<size_t>& allocations) {
  for (size_t frame = 1; frame < allocations.size(); ++frame) {
    INFO("frame " << frame + 1 << " of " << allocations.size());
    CHECK(allocations[frame] == 0);
  }
}

const std::string kCountedText = "The old house stands near the river.";

}  // namespace

TEST_CASE("The count sees what is allocated, and not what a driver allocates") {
  using Dispatch = UncountedCommand<NameOf_vkCmdDispatch, PFN_vkCmdDispatch>;
  Dispatch::original = [](VkCommandBuffer, uint32_t, uint32_t, uint32_t) {
    const auto drivers = std::make_unique<int>(1);
    seen = drivers.get();
  };
  size_t before = 0, own = 0, all = 0;
  {
    const CountedAllocations counted;
    before = counted.so_far();
    const auto made = std::make_unique<int>(1);
    seen = made.get();
    const std::vector<int> many(100);
    seen = const_cast<int*>(many.data());
    own = counted.so_far();
    Dispatch::call(VK_NULL_HANDLE, 1, 1, 1);
    all = counted.so_far();
  }
  CHECK(before == 0);
  CHECK(own == 2);
  CHECK(all == own);
  const auto uncounted = std::make_unique<int>(1);
  seen = uncounted.get();
  CHECK(t_allocations == own);
}

TEST_CASE("Frames of a translation allocate nothing after the first") {
  const VulkanApplication application;
  Translator translator(adopt_device(uncounted_driver(application)), bundled_model());
  for (const double budget : kBudgets) {
    for (const uint32_t beams : {1u, 4u}) {
      TranslationTask task(translator, kCountedText, {.beams = beams, .max_new_tokens = 6});
      const std::vector<size_t> found = allocations_of(application, task, budget);
      CHECK(found.size() > 1);
      check_frames(found);
    }
  }
}

TEST_CASE("Frames of an answer allocate nothing after the first") {
  const VulkanApplication application;
  const auto device = adopt_device(uncounted_driver(application));
  TextGenerator generator(device, small_decoder().string(), {.context = 96});
  const Destination logits(*device, uint64_t{4} * generator.vocabulary());
  const Grammar grammar = Grammar::regex("[a-z]{3,5}(-[0-9]{2})+");
  const GenerateOptions cases[] = {
      {.max_new_tokens = 8, .ignore_end = true},
      {.sampling = Sampling{.temperature = 1, .top_k = 40, .repetition_penalty = 1.1f, .seed = 5},
       .max_new_tokens = 8,
       .ignore_end = true},
      {.max_new_tokens = 8, .grammar = grammar}};
  for (const double budget : kBudgets) {
    for (const GenerateOptions& options : cases) {
      GenerationTask task(generator, kCountedText, options,
                          {.logits = logits.buffer, .states = {}});
      const std::vector<size_t> found = allocations_of(application, task, budget);
      CHECK(found.size() > 1);
      check_frames(found);
      task.result();
    }
  }
}

TEST_CASE("Frames of embeddings and of maps allocate nothing after the first") {
  const VulkanApplication application;
  const auto device = adopt_device(uncounted_driver(application));
  TextEncoder encoder(device, small_encoder());
  Translator translator(device, bundled_model());
  const Translation translation = translator.translate(kCountedText);
  ImageEncoder seeing(device, digits());
  Image image = {.width = 20, .height = 30, .rgb = {}};
  image.rgb.resize(size_t{3} * image.width * image.height, 128);
  EmbeddingTask embedding(encoder, kCountedText);
  ImageTask seen(seeing, image, {.attention = true});
  AttentionTask maps(translator, translation, {}, {.target = 32});
  for (FrameTask* task : {static_cast<FrameTask*>(&embedding), static_cast<FrameTask*>(&seen),
                          static_cast<FrameTask*>(&maps)}) {
    const std::vector<size_t> found = allocations_of(application, *task, 0);
    CHECK(found.size() > 2);
    check_frames(found);
  }
  // A restart keeps what the frames before it had.
  maps.restart(translation);
  for (const size_t allocations : allocations_of(application, maps, 0)) CHECK(allocations == 0);
}
