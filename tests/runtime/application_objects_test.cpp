// What an application gives in place of the library's own: allocation callbacks, which every call
// gets that makes or destroys something, and a pipeline cache, which stays the application's.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/pipeline.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/small_decoder.h"
#include "tests/small_marian.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"
#include "tests/wrapped_device.h"

#include "mulciber/embedding.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Allocation callbacks that know what is allocated.
class KnownAllocations {
 public:
  KnownAllocations() {
    callbacks_.pUserData = this;
    callbacks_.pfnAllocation = allocate;
    callbacks_.pfnReallocation = reallocate;
    callbacks_.pfnFree = free;
  }
  ~KnownAllocations() {
    for (void* memory : alive_) std::free(memory);
  }
  KnownAllocations(const KnownAllocations&) = delete;

  const VkAllocationCallbacks* get() const { return &callbacks_; }
  size_t made() const { return made_; }
  size_t alive() const { return alive_.size(); }
  size_t unknown() const { return unknown_; }  // frees of what was not allocated here

 private:
  static VKAPI_ATTR void* VKAPI_CALL allocate(void* user, size_t size, size_t,
                                              VkSystemAllocationScope) {
    auto* known = static_cast<KnownAllocations*>(user);
    const std::lock_guard lock(known->mutex_);
    ++known->made_;
    return *known->alive_.insert(std::malloc(size)).first;
  }
  static VKAPI_ATTR void* VKAPI_CALL reallocate(void*, void*, size_t, size_t,
                                                VkSystemAllocationScope) {
    return nullptr;  // the wrapped calls do not grow what they allocate
  }
  static VKAPI_ATTR void VKAPI_CALL free(void* user, void* memory) {
    auto* known = static_cast<KnownAllocations*>(user);
    const std::lock_guard lock(known->mutex_);
    if (known->alive_.erase(memory) == 0)
      ++known->unknown_;
    else
      std::free(memory);
  }

  VkAllocationCallbacks callbacks_ = {};
  std::mutex mutex_;
  std::set<void*> alive_;
  size_t made_ = 0, unknown_ = 0;
};

/// What the library gave to calls on the device that make and destroy objects.
struct GivenObjects {
  std::mutex mutex;
  size_t with = 0, without = 0;  // calls with callbacks, and those with null
  size_t twice = 0;              // handles of two living objects
  std::map<std::string, size_t> calls;
  std::map<uint64_t, void*> memory;     // of living objects, by handle
  std::vector<VkPipelineCache> caches;  // of vkCreateComputePipelines

  void note(const char* name, const VkAllocationCallbacks* callbacks) {
    ++calls[name];
    ++(callbacks ? with : without);
  }
  void made(const VkAllocationCallbacks* callbacks, uint64_t handle) {
    if (!callbacks) return;
    void* const bytes =
        callbacks->pfnAllocation(callbacks->pUserData, 32, 8, VK_SYSTEM_ALLOCATION_SCOPE_OBJECT);
    if (!memory.emplace(handle, bytes).second) ++twice;
  }
  void destroyed(const VkAllocationCallbacks* callbacks, uint64_t handle) {
    const auto found = memory.find(handle);
    if (callbacks && found != memory.end()) {
      callbacks->pfnFree(callbacks->pUserData, found->second);
      memory.erase(found);
    }
  }
  void reset() {
    with = without = twice = 0;
    calls.clear();
    memory.clear();
    caches.clear();
  }
};
GivenObjects g_given;

template <typename Handle>
uint64_t number_of(Handle handle) {
  uint64_t number = 0;
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

// Drivers honour callbacks in part: lavapipe frees pipelines by itself. So the driver gets none,
// and the wrapped calls allocate and free in its place.
template <typename Name, typename Function>
struct StandIn {
  static constexpr bool kWraps = false;
};

template <typename Name, typename Info, typename Handle>
struct StandIn<Name,
               VkResult(VKAPI_PTR*)(VkDevice, const Info*, const VkAllocationCallbacks*, Handle*)> {
  static constexpr bool kWraps = true;
  static inline VkResult(VKAPI_PTR* original)(VkDevice, const Info*, const VkAllocationCallbacks*,
                                              Handle*) = nullptr;
  static VKAPI_ATTR VkResult VKAPI_CALL call(VkDevice device, const Info* info,
                                             const VkAllocationCallbacks* callbacks,
                                             Handle* handle) {
    const VkResult result = original(device, info, nullptr, handle);
    const std::lock_guard lock(g_given.mutex);
    g_given.note(Name::kName, callbacks);
    if (result == VK_SUCCESS) g_given.made(callbacks, number_of(*handle));
    return result;
  }
};

template <typename Name>
struct StandIn<Name, PFN_vkCreateComputePipelines> {
  static constexpr bool kWraps = true;
  static inline PFN_vkCreateComputePipelines original = nullptr;
  static VKAPI_ATTR VkResult VKAPI_CALL call(VkDevice device, VkPipelineCache cache, uint32_t count,
                                             const VkComputePipelineCreateInfo* infos,
                                             const VkAllocationCallbacks* callbacks,
                                             VkPipeline* pipelines) {
    const VkResult result = original(device, cache, count, infos, nullptr, pipelines);
    const std::lock_guard lock(g_given.mutex);
    g_given.note(Name::kName, callbacks);
    g_given.caches.push_back(cache);
    for (uint32_t i = 0; i < count && result == VK_SUCCESS; ++i)
      g_given.made(callbacks, number_of(pipelines[i]));
    return result;
  }
};

template <typename Name, typename Handle>
struct StandIn<Name, void(VKAPI_PTR*)(VkDevice, Handle, const VkAllocationCallbacks*)> {
  static constexpr bool kWraps = true;
  static inline void(VKAPI_PTR* original)(VkDevice, Handle, const VkAllocationCallbacks*) = nullptr;
  static VKAPI_ATTR void VKAPI_CALL call(VkDevice device, Handle handle,
                                         const VkAllocationCallbacks* callbacks) {
    {
      const std::lock_guard lock(g_given.mutex);
      g_given.note(Name::kName, callbacks);
      g_given.destroyed(callbacks, number_of(handle));
    }
    original(device, handle, nullptr);  // whose handle may be used anew at once
  }
};

ApplicationDevice watched(const VulkanApplication& application) {
  g_given.reset();
  return WrappedDevice<StandIn>::wrap(application.lent());
}

/// Makes objects of every kind: memory, pipelines, semaphores, queries, texel views, fences.
void use_models(const std::shared_ptr<Device>& device) {
  Translator translator(device, small_marian().string());
  TranslationTask task(translator, "hello", {.max_new_tokens = 2});
  while (!task.done()) {
    task.step(1e6);
    task.wait();
  }
  translator.translate("hello", {.max_new_tokens = 2});
  TextGenerator generator(device, small_decoder().string(), {.context = 32});
  generator.generate("The", {.max_new_tokens = 2, .ignore_end = true});
}

VkPipelineCache make_pipeline_cache(const VulkanApplication& application) {
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  VkPipelineCache cache = VK_NULL_HANDLE;
  REQUIRE(application.vk.vkCreatePipelineCache(application.device, &info, nullptr, &cache) ==
          VK_SUCCESS);
  return cache;
}

std::vector<std::byte> content_of(const VulkanApplication& application, VkPipelineCache cache) {
  size_t size = 0;
  REQUIRE(application.vk.vkGetPipelineCacheData(application.device, cache, &size, nullptr) ==
          VK_SUCCESS);
  std::vector<std::byte> bytes(size);
  REQUIRE(application.vk.vkGetPipelineCacheData(application.device, cache, &size, bytes.data()) ==
          VK_SUCCESS);
  return bytes;
}

}  // namespace

TEST_CASE("Every call that makes or destroys something gets the application's callbacks") {
  const VulkanApplication application;
  KnownAllocations known;
  {
    ApplicationDevice lent = watched(application);
    VkAllocationCallbacks copied = *known.get();
    lent.allocation_callbacks = &copied;
    lent.pipeline_threads = 2;
    const auto device = adopt_device(lent);
    copied = {};  // the library has its own copy
    use_models(device);
    CHECK(g_given.with > 50);
    CHECK(known.made() > 20);
  }
  CHECK(g_given.without == 0);
  CHECK(g_given.twice == 0);
  CHECK(known.alive() == 0);
  CHECK(known.unknown() == 0);
  CHECK(g_given.calls["vkCreatePipelineCache"] == 1);
  CHECK(g_given.calls["vkDestroyPipelineCache"] == 1);
  // Without callbacks the driver allocates by itself.
  {
    const auto device = adopt_device(watched(application));
    use_models(device);
  }
  CHECK(g_given.with == 0);
  CHECK(g_given.without > 50);
}

TEST_CASE("Pipelines are made with the application's cache, which stays its own") {
  const VulkanApplication application;
  const VkPipelineCache cache = make_pipeline_cache(application);
  const TemporaryFolder folder;
  {
    ApplicationDevice lent = watched(application);
    lent.pipeline_cache_handle = cache;
    const auto device = adopt_device(lent, {.cache_folder = folder.path().string()});
    use_models(device);
    CHECK(device->pipelines().file().empty());
    CHECK(pipeline_cache(*device) == content_of(application, cache));
  }
  CHECK(g_given.calls["vkCreatePipelineCache"] == 0);
  CHECK(g_given.calls["vkDestroyPipelineCache"] == 0);
  REQUIRE_FALSE(g_given.caches.empty());
  CHECK(std::ranges::all_of(g_given.caches, [&](VkPipelineCache used) { return used == cache; }));
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    CHECK_FALSE(entry.path().filename().string().starts_with("pipelines-"));
  // It can be used further, by another device of the library too.
  {
    ApplicationDevice lent = application.lent();
    lent.pipeline_cache_handle = cache;
    use_models(adopt_device(lent));
  }
  CHECK_FALSE(content_of(application, cache).empty());
  application.vk.vkDestroyPipelineCache(application.device, cache, nullptr);
}

TEST_CASE("Callbacks without a function, and a pipeline cache in two forms, are refused") {
  const VulkanApplication application;
  const auto refusal = [](const ApplicationDevice& lent) -> std::string {
    try {
      adopt_device(lent);
    } catch (const DeviceError& error) {
      if (error.kind() == DeviceError::Kind::kUnavailable) return error.what();
    }
    return "";
  };
  KnownAllocations known;
  ApplicationDevice lent = application.lent();
  VkAllocationCallbacks callbacks = *known.get();
  callbacks.pfnReallocation = nullptr;
  lent.allocation_callbacks = &callbacks;
  CHECK_THAT(refusal(lent), ContainsSubstring("allocation callbacks that lack a function"));
  lent = application.lent();
  const VkPipelineCache cache = make_pipeline_cache(application);
  lent.pipeline_cache_handle = cache;
  lent.pipeline_cache = content_of(application, cache);
  lent.pipeline_cache.resize(std::max<size_t>(lent.pipeline_cache.size(), 1));
  CHECK_THAT(refusal(lent), ContainsSubstring("pipeline cache both as a handle and as bytes"));
  application.vk.vkDestroyPipelineCache(application.device, cache, nullptr);
}

TEST_CASE("Callbacks and a pipeline cache are given in C as in C++") {
  const VulkanApplication application;
  const VkPipelineCache cache = make_pipeline_cache(application);
  KnownAllocations known;
  const ApplicationDevice wrapped = watched(application);
  Lent lent(application);
  lent.physical.get_instance_proc_addr = wrapped.physical.get_instance_proc_addr;
  lent.info.allocation_callbacks = known.get();
  lent.info.pipeline_cache_handle = cache;
  const Context context;
  MulciberDevice* device = nullptr;
  MulciberModel* model = nullptr;
  MulciberTranslator* translator = nullptr;
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_adopt_device(context.handle, &lent.info, &device) == MULCIBER_OK);
  REQUIRE(mulciber_open_model(context.handle, small_marian().c_str(), &model) == MULCIBER_OK);
  REQUIRE(mulciber_load_translator(context.handle, device, model, nullptr, &translator) ==
          MULCIBER_OK);
  REQUIRE(mulciber_begin_translation(context.handle, translator, "hello", nullptr, &task) ==
          MULCIBER_OK);
  mulciber_destroy_task(task);
  mulciber_destroy_translator(translator);
  mulciber_destroy_model(model);
  mulciber_destroy_device(device);
  CHECK(g_given.with > 20);
  CHECK(g_given.without == 0);
  CHECK(known.alive() == 0);
  CHECK(known.unknown() == 0);
  REQUIRE_FALSE(g_given.caches.empty());
  CHECK(std::ranges::all_of(g_given.caches, [&](VkPipelineCache used) { return used == cache; }));
  const std::byte one{};
  lent.info.pipeline_cache = &one;
  lent.info.pipeline_cache_size = 1;
  CHECK(mulciber_adopt_device(context.handle, &lent.info, &device) == MULCIBER_ERROR_UNAVAILABLE);
  CHECK(device == nullptr);
  application.vk.vkDestroyPipelineCache(application.device, cache, nullptr);
}
