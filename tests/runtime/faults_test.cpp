// Every Vulkan call that can fail is made to fail, one at a time, while models are loaded, run in
// slices and destroyed on an application's device: each gives an error, leaves nothing behind, and
// the device can be used further.
//   MULCIBER_FAULTS=write runtime_tests -# "[#faults_test]"   writes docs/reference/faults.md
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"
#include "mulciber/model_loader.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The call path to a Vulkan call: return addresses in the library, innermost first. Six of them
/// tell apart what a buffer or a pipeline is made for.
using Way = std::array<void*, 6>;

/// The call that is to fail, and what was called and made.
struct Faults {
  std::string function;  // "" for none
  int nth = 0;           // which of its calls, from 1
  VkResult result = VK_SUCCESS;
  std::map<std::string, int> calls;
  // For each function, the paths by which calls reach it, and the first call of each path.
  std::map<std::string, std::map<Way, int>> ways;
  std::map<std::string, int> alive;  // by kind of object
  bool injected = false;

  [[gnu::noinline]] bool fails(const char* name) {
    const int number = ++calls[name];
    std::array<void*, std::tuple_size_v<Way> + 2> stack{};  // this function, wrapper, path
    backtrace(stack.data(), static_cast<int>(stack.size()));
    Way way;
    std::copy(stack.begin() + 2, stack.end(), way.begin());
    ways[name].emplace(way, number);
    if (number != nth || function != name) return false;
    return injected = true;
  }
};
Faults faults;

template <typename Tag, typename Function>
struct Wrapped;

/// Wraps a call that can fail. Tag::kMakes: the kind of object that it makes, or "".
template <typename Tag, typename... Arguments>
struct Wrapped<Tag, VkResult(VKAPI_PTR*)(Arguments...)> {
  static inline VkResult(VKAPI_PTR* original)(Arguments...) = nullptr;
  static VKAPI_ATTR VkResult VKAPI_CALL call(Arguments... arguments) {
    if (faults.fails(Tag::kName)) return faults.result;
    const VkResult result = original(arguments...);
    if (result == VK_SUCCESS && *Tag::kMakes) ++faults.alive[Tag::kMakes];
    return result;
  }
};

/// Wraps a call that destroys the kind of object Tag::kMakes.
template <typename Tag, typename Handle>
struct Wrapped<Tag, void(VKAPI_PTR*)(VkDevice, Handle, const VkAllocationCallbacks*)> {
  static inline void(VKAPI_PTR* original)(VkDevice, Handle, const VkAllocationCallbacks*) = nullptr;
  static VKAPI_ATTR void VKAPI_CALL call(VkDevice device, Handle handle,
                                         const VkAllocationCallbacks* callbacks) {
    if (handle) --faults.alive[Tag::kMakes];
    original(device, handle, callbacks);
  }
};

// clang-format off
#define MULCIBER_WRAPPED_FUNCTIONS(F)                       \
  F(vkAllocateCommandBuffers, "")                           \
  F(vkAllocateDescriptorSets, "")                           \
  F(vkAllocateMemory, "memory")                             \
  F(vkBeginCommandBuffer, "")                               \
  F(vkBindBufferMemory, "")                                 \
  F(vkCreateBuffer, "buffer")                               \
  F(vkCreateBufferView, "buffer view")                      \
  F(vkCreateCommandPool, "command pool")                    \
  F(vkCreateComputePipelines, "pipeline")                   \
  F(vkCreateDescriptorPool, "descriptor pool")              \
  F(vkCreateDescriptorSetLayout, "descriptor set layout")   \
  F(vkCreateFence, "fence")                                 \
  F(vkCreatePipelineCache, "pipeline cache")                \
  F(vkCreatePipelineLayout, "pipeline layout")              \
  F(vkCreateQueryPool, "query pool")                        \
  F(vkCreateSemaphore, "semaphore")                         \
  F(vkCreateShaderModule, "shader module")                  \
  F(vkEndCommandBuffer, "")                                 \
  F(vkGetFenceStatus, "")                                   \
  F(vkGetPipelineCacheData, "")                             \
  F(vkGetQueryPoolResults, "")                              \
  F(vkMapMemory, "")                                        \
  F(vkQueueSubmit, "")                                      \
  F(vkResetCommandBuffer, "")                               \
  F(vkResetFences, "")                                      \
  F(vkWaitForFences, "")                                    \
  F(vkWaitSemaphores, "")                                   \
  F(vkDestroyBuffer, "buffer")                              \
  F(vkDestroyBufferView, "buffer view")                     \
  F(vkDestroyCommandPool, "command pool")                   \
  F(vkDestroyDescriptorPool, "descriptor pool")             \
  F(vkDestroyDescriptorSetLayout, "descriptor set layout")  \
  F(vkDestroyFence, "fence")                                \
  F(vkDestroyPipeline, "pipeline")                          \
  F(vkDestroyPipelineCache, "pipeline cache")               \
  F(vkDestroyPipelineLayout, "pipeline layout")             \
  F(vkDestroyQueryPool, "query pool")                       \
  F(vkDestroySemaphore, "semaphore")                        \
  F(vkDestroyShaderModule, "shader module")                 \
  F(vkFreeMemory, "memory")
// clang-format on

#define MULCIBER_TAG(name, makes)                                 \
  struct Tag_##name {                                             \
    [[maybe_unused]] static constexpr const char* kName = #name;  \
    [[maybe_unused]] static constexpr const char* kMakes = makes; \
  };
MULCIBER_WRAPPED_FUNCTIONS(MULCIBER_TAG)
#undef MULCIBER_TAG

PFN_vkGetDeviceProcAddr device_entry = nullptr;
PFN_vkGetInstanceProcAddr instance_entry = nullptr;

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL faulty_device_entry(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = device_entry(device, name);
#define MULCIBER_WRAP(function, makes)                        \
  if (found && std::string_view(name) == #function) {         \
    using Call = Wrapped<Tag_##function, PFN_##function>;     \
    Call::original = reinterpret_cast<PFN_##function>(found); \
    return reinterpret_cast<PFN_vkVoidFunction>(&Call::call); \
  }
  MULCIBER_WRAPPED_FUNCTIONS(MULCIBER_WRAP)
#undef MULCIBER_WRAP
  return found;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL faulty_instance_entry(VkInstance instance,
                                                               const char* name) {
  const PFN_vkVoidFunction found = instance_entry(instance, name);
  if (std::string_view(name) != "vkGetDeviceProcAddr") return found;
  device_entry = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(&faulty_device_entry);
}

void finish(FrameTask& task) {
  while (!task.done()) {
    task.step(1e6);
    task.wait();
  }
}

/// Does everything that an application does with a small translator and a small language model.
/// Returns the outcome in words.
std::string use_everything(const VulkanApplication& application) {
  try {
    ApplicationDevice lent = application.lent();
    instance_entry = lent.physical.get_instance_proc_addr;
    lent.physical.get_instance_proc_addr = faulty_instance_entry;
    const auto device = adopt_device(lent);
    Translator translator(device, (source_dir() / "tests/data/marian").string());
    {
      TranslationTask task(translator, "hello", {.max_new_tokens = 3});
      finish(task);
      task.result();
    }
    translator.translate("hello", {.max_new_tokens = 2});
    ModelLoader loader(device, open_model(small_decoder().string()), {.context = 32});
    while (!loader.step(1 << 18).complete) {
    }
    TextGenerator generator = loader.generator();
    GenerationTask task(generator, "The", {.max_new_tokens = 3, .ignore_end = true});
    finish(task);
    AttentionTask maps(generator, task.result());
    finish(maps);
    pipeline_cache(*device);
    return "goes on";
  } catch (const DeviceError& error) {
    switch (error.kind()) {
      case DeviceError::Kind::kUnavailable: return "DeviceError: unavailable";
      case DeviceError::Kind::kOutOfMemory: return "DeviceError: out of memory";
      case DeviceError::Kind::kLost: return "DeviceError: lost";
      case DeviceError::Kind::kFailed: return "DeviceError: failed";
    }
    return "?";
  } catch (const KernelError&) {
    return "KernelError";
  }
}

void require_nothing_alive() {
  for (const auto& [kind, count] : faults.alive) {
    INFO(kind);
    CHECK(count == 0);
  }
}

const std::pair<VkResult, const char*> kResults[] = {
    {VK_ERROR_OUT_OF_HOST_MEMORY, "out of host memory"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, "out of device memory"},
    {VK_ERROR_DEVICE_LOST, "device lost"},
    {VK_ERROR_INITIALIZATION_FAILED, "initialization failed"},
    {VK_TIMEOUT, "timeout"}};

/// Whether a function can return this result.
bool may_give(const std::string& function, VkResult result) {
  return result != VK_TIMEOUT || function.starts_with("vkWait");
}

std::string file_of_page() { return (source_dir() / "docs/reference/faults.md").string(); }

}  // namespace

TEST_CASE("The loss of a device says what was in flight, and stays") {
  VulkanApplication application;
  faults = {};
  ApplicationDevice lent = application.lent();
  instance_entry = lent.physical.get_instance_proc_addr;
  lent.physical.get_instance_proc_addr = faulty_instance_entry;
  Translator translator(adopt_device(lent), (source_dir() / "tests/data/marian").string());
  TranslationTask task(translator, "hello", {.max_new_tokens = 3});
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const DeviceError& error) {
      if (error.kind() == DeviceError::Kind::kLost) return error.what();
    }
    return "";
  };
  const auto go_on = [&] {
    while (!task.done()) {
      task.step(1);
      task.wait();
    }
  };
  faults = {.function = "vkQueueSubmit", .nth = 2, .result = VK_ERROR_DEVICE_LOST};
  const std::string lost = message(go_on);
  CHECK_THAT(lost, ContainsSubstring("lost in vkQueueSubmit, with slice 2 in flight, from `"));
  CHECK_THAT(lost, ContainsSubstring("encoder"));
  CHECK_THAT(message(go_on), ContainsSubstring("lost earlier, with slice 2 in flight"));
  CHECK_THAT(message([&] { translator.translate("hello"); }), ContainsSubstring("lost earlier"));
  CHECK_THAT(message([&] { translator.trim(); }), ContainsSubstring("lost earlier"));
}

TEST_CASE("After a model for which memory did not suffice a smaller one is loaded") {
  VulkanApplication application;
  faults = {};
  ApplicationDevice lent = application.lent();
  instance_entry = lent.physical.get_instance_proc_addr;
  lent.physical.get_instance_proc_addr = faulty_instance_entry;
  uint64_t left = 8 << 20;  // one block, with weights alone
  lent.allocator.allocate = [&](const MemoryRequest& request, ApplicationMemory* memory) {
    if (request.requirements.size > left) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = request.device_address ? VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT : 0;
    VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    info.pNext = &flags;
    info.allocationSize = request.requirements.size;
    VkPhysicalDeviceMemoryProperties types;
    application.instance_vk.vkGetPhysicalDeviceMemoryProperties(
        application.physical.physical_device, &types);
    for (uint32_t i = 0; i < types.memoryTypeCount; ++i) {
      const bool fits = (request.requirements.memoryTypeBits >> i & 1) != 0 &&
                        (types.memoryTypes[i].propertyFlags & request.required) == request.required;
      if (!fits) continue;
      info.memoryTypeIndex = i;
      const VkResult result =
          application.vk.vkAllocateMemory(application.device, &info, nullptr, &memory->memory);
      if (result != VK_SUCCESS) return result;
      application.vk.vkMapMemory(application.device, memory->memory, 0, VK_WHOLE_SIZE, 0,
                                 &memory->mapped);
      memory->handle = reinterpret_cast<void*>(info.allocationSize);
      left -= info.allocationSize;
      ++faults.alive["lent memory"];
      return VK_SUCCESS;
    }
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  };
  lent.allocator.free = [&](const ApplicationMemory& memory) {
    left += reinterpret_cast<uint64_t>(memory.handle);
    --faults.alive["lent memory"];
    application.vk.vkFreeMemory(application.device, memory.memory, nullptr);
  };
  {
    const auto device = adopt_device(lent);
    try {
      Translator large(device, (source_dir() / "assets/en-de").string());
      large.translate("hello");
      FAIL("there was memory for the larger model");
    } catch (const DeviceError& error) {
      CHECK(error.kind() == DeviceError::Kind::kOutOfMemory);
    }
    left += 24 << 20;
    Translator small(device, (source_dir() / "tests/data/marian").string());
    CHECK(small.translate("hello", {.max_new_tokens = 2}).complete);
  }
  require_nothing_alive();
}

TEST_CASE("Every call that fails is an error, and leaves nothing behind") {
  VulkanApplication application;
  faults = {};
  REQUIRE(use_everything(application) == "goes on");
  require_nothing_alive();
  const std::map<std::string, int> calls = faults.calls;
  const auto ways = faults.ways;
  CHECK(calls.size() > 20);
  std::string page =
      "# What failing Vulkan calls do\n\n"
      "Generated by `MULCIBER_FAULTS=write build/tests/runtime_tests` on a CPU driver: on an "
      "application's "
      "device a small translator and\n"
      "a small language model are loaded, run in slices and whole, and destroyed; wrapped entry "
      "points let a call of each\n"
      "function fail, with one result after the other: its first call, and the first by each other "
      "way that leads to it (where\n"
      "six functions under way were called from). Each time nothing that was made is left, and the "
      "same device then does all\n"
      "of it. \"goes on\": the work was done without that call.\n\n| call |";
  for (const auto& [result, name] : kResults) page += fmt::format(" {} |", name);
  page += "\n| --- | --- | --- | --- | --- | --- |\n";
  // The page is about one driver: others map other memory and make other pipelines. Where a run
  // takes long, each call fails with only one of the results.
#ifdef MULCIBER_SANITIZED
  const bool whole = false;
#else
  const bool whole =
      describe(*adopt_device(application.lent())).driver.find("Mesa 22.3") != std::string::npos;
#endif
  // The layers' checks do not depend on the result. A run that takes a share of the settings takes
  // the results in rotation.
  const bool every_result = whole && std::getenv("MULCIBER_VALIDATE") == nullptr &&
                            std::getenv("MULCIBER_SHARE") == nullptr;
  size_t turn = 0;
  for (const auto& [function, count] : calls) {
    page += fmt::format("| {} |", function);
    ++turn;
    std::set<int> failing = {1};
    if (whole)
      for (const auto& [way, first] : ways.at(function)) failing.insert(first);
    for (const auto& [result, name] : kResults) {
      if (!may_give(function, result)) {
        page += " |";
        continue;
      }
      if (!every_result && result != kResults[turn % 4].first) continue;
      std::set<std::string> outcomes;
      for (const int nth : failing) {
        INFO(function << ", call " << nth << " of " << count << ": " << name);
        faults = {.function = function, .nth = nth, .result = result};
        outcomes.insert(use_everything(application));
        CHECK(faults.injected);
        require_nothing_alive();
      }
      CHECK_FALSE(outcomes.count("?"));
      std::string text;
      for (const std::string& outcome : outcomes) text += (text.empty() ? "" : "; ") + outcome;
      page += fmt::format(" {} |", text);
    }
    page += "\n";
    faults = {};
    if (!whole) continue;
    INFO("after " << function);
    CHECK(use_everything(application) == "goes on");
    require_nothing_alive();
  }
  CHECK(use_everything(application) == "goes on");
  if (!every_result) return;
  const char* writes = std::getenv("MULCIBER_FAULTS");
  if (writes && std::string(writes) == "write") std::ofstream(file_of_page()) << page;
  std::stringstream written;
  written << std::ifstream(file_of_page()).rdbuf();
  INFO("run: MULCIBER_FAULTS=write build/tests/runtime_tests");
  CHECK(written.str() == page);
}
