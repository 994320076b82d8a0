#include "runtime/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "runtime/choices.h"
#include "runtime/debug_labels.h"
#include "runtime/deny_list.h"
#include "runtime/device_features.h"
#include "runtime/instance.h"
#include "runtime/occupancy_priority.h"
#include "runtime/pipeline.h"
#include "runtime/profiler.h"
#include "runtime/queue_families.h"
#include "runtime/queue_priority.h"

namespace mulciber {
namespace {

using Kind = DeviceError::Kind;

struct Found {
  VkPhysicalDevice physical;
  Capabilities capabilities;
};

// Adds the verdicts of the self-test and the rows chosen by measurement.
void apply_what_is_known(Capabilities& device, const std::string& cache_folder) {
  DenyList(device, cache_folder).apply(device);
  const Choices choices(device, cache_folder);
  device.choices = choices.valid();
}

// Sorts devices best first: hardware before software, then by memory, then in the driver's order.
std::vector<Found> find_devices(const InstanceHandle& instance, const DeviceOptions& options) {
  uint32_t count = 0;
  const InstanceFunctions& vk = instance.vk;
  vk.vkEnumeratePhysicalDevices(instance.instance, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  vk.vkEnumeratePhysicalDevices(instance.instance, &count, handles.data());
  handles.resize(count);
  std::vector<Found> found;
  for (VkPhysicalDevice physical : handles) {
    VkPhysicalDeviceProperties properties;
    vk.vkGetPhysicalDeviceProperties(physical, &properties);
    if (properties.apiVersion < VK_API_VERSION_1_1) continue;
    Found device{physical, read_capabilities(vk, physical, instance.version)};
    apply_quirks(device.capabilities);
    apply_limits(device.capabilities, options.limits);
    if (!options.ignore_verdicts) apply_what_is_known(device.capabilities, options.cache_folder);
    found.push_back(std::move(device));
  }
  auto local_memory = [](const Capabilities& c) {
    uint64_t most = 0;
    for (const MemoryHeap& heap : c.heaps) {
      if (heap.device_local) most = std::max(most, heap.size);
    }
    return most;
  };
  std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
    if (a.capabilities.kind != b.capabilities.kind) {
      return a.capabilities.kind < b.capabilities.kind;  // the enum's order is best first
    }
    return local_memory(a.capabilities) > local_memory(b.capabilities);
  });
  if (found.empty()) {
    throw DeviceError(Kind::kUnavailable, "Vulkan", "no device with Vulkan 1.1 or newer",
                      "install a driver; mesa-vulkan-drivers has one that runs on the CPU");
  }
  return found;
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

const Found& choose(const std::vector<Found>& found, const std::string& wanted) {
  if (wanted.empty()) return found.front();
  if (wanted.find_first_not_of("0123456789") == std::string::npos && wanted.size() < 4) {
    size_t index = std::stoul(wanted);
    if (index < found.size()) return found[index];
  } else {
    for (const Found& device : found) {
      if (lower_case(device.capabilities.name).find(lower_case(wanted)) != std::string::npos)
        return device;
    }
  }
  std::string names;
  for (size_t i = 0; i < found.size(); ++i) {
    names += fmt::format("{}{} ({})", i ? ", " : "", i, found[i].capabilities.name);
  }
  throw DeviceError(Kind::kUnavailable, "device", fmt::format("no device '{}'", wanted),
                    "the devices are " + names);
}

void require_application(const ApplicationDevice& application) {
  const auto fail = [](const char* what, const char* remedy) {
    throw DeviceError(Kind::kUnavailable, "adopted device", what, remedy);
  };
  if (!application.device) fail("lacks the device", "give the application's VkDevice");
  if (!application.queue.queue) fail("lacks a queue", "give one whose family computes");
  if (!application.queue.lock != !application.queue.unlock)
    fail("has a queue with one of lock and unlock", "give both, or neither");
  if (!(application.memory_priority >= 0 && application.memory_priority <= 1))
    fail("has a memory_priority beyond 0 and 1", "give one between them");
  if (!application.allocator.allocate != !application.allocator.free)
    fail("has an allocator with one of allocate and free", "give both, or neither");
  if (const VkAllocationCallbacks* callbacks = application.allocation_callbacks;
      callbacks &&
      (!callbacks->pfnAllocation || !callbacks->pfnReallocation || !callbacks->pfnFree))
    fail("has allocation callbacks that lack a function",
         "give pfnAllocation, pfnReallocation and pfnFree");
  if (application.pipeline_cache_handle && !application.pipeline_cache.empty())
    fail("has a pipeline cache both as a handle and as bytes", "give one of them");
  if (application.physical.api_version < VK_API_VERSION_1_1)
    fail("is of Vulkan 1.0", "make the instance with an apiVersion of 1.1 or newer");
}

void require_family(const InstanceFunctions& vk, const ApplicationDevice& application) {
  const std::vector<VkQueueFamilyProperties> families =
      queue_families(vk, application.physical.physical_device);
  const uint32_t family = application.queue.family;
  if (family < families.size() && computes(families[family])) return;
  throw DeviceError(Kind::kUnavailable, "adopted device",
                    family < families.size()
                        ? fmt::format("has a queue of family {}, which cannot compute", family)
                        : fmt::format("has a queue of family {}, and there are {} families", family,
                                      families.size()),
                    "give a queue with VK_QUEUE_COMPUTE_BIT, and its family: "
                    "requirements() names one");
}

DeviceFeatures enabled_features(const InstanceFunctions& vk, const ApplicationDevice& application) {
  VkPhysicalDeviceProperties properties;
  vk.vkGetPhysicalDeviceProperties(application.physical.physical_device, &properties);
  const uint32_t version = std::min(properties.apiVersion, application.physical.api_version);
  const DeviceFeatures features = application.enabled_features
                                      ? read_features(*application.enabled_features)
                                      : DeviceFeatures{};
  if (features.memory_model && !features.memory_model_device_scope) {
    throw DeviceError(Kind::kUnavailable, "adopted device",
                      "has vulkanMemoryModel enabled without vulkanMemoryModelDeviceScope",
                      "enable both, or neither: kernels have atomic operations");
  }
  return with_extensions(features, version, application.enabled_extensions);
}

}  // namespace

std::vector<Capabilities> Device::enumerate(const DeviceOptions& options) {
  auto instance = create_instance(false);
  std::vector<Capabilities> list;
  for (Found& device : find_devices(*instance, options))
    list.push_back(std::move(device.capabilities));
  return list;
}

std::unique_ptr<Device> Device::open(const DeviceOptions& options) {
  std::unique_ptr<Device> device(new Device);
  device->options_ = options;
  device->instance_ = create_instance(options.validate, options.debug_labels);
  std::vector<Found> found = find_devices(*device->instance_, options);
  const Found& chosen = choose(found, device->options_.device);
  device->capabilities_ = chosen.capabilities;
  if (device->options_.hang_seconds <= 0) {
    device->options_.hang_seconds = chosen.capabilities.tuning.hang_seconds;
  }
  device->physical_ = chosen.physical;
  device->create();
  return device;
}

std::unique_ptr<Device> Device::adopt(const ApplicationDevice& application,
                                      const DeviceOptions& options) {
  require_application(application);
  std::unique_ptr<Device> device(new Device);
  device->options_ = options;
  device->application_ = application;
  if (application.allocation_callbacks) {
    device->callbacks_ = *application.allocation_callbacks;
    device->application_.allocation_callbacks = &device->callbacks_;
  }
  device->options_.queue_priority = QueuePriority::kDefault;
  device->options_.debug_labels = options.debug_labels || application.debug_labels;
  device->owned_ = false;
  device->instance_ = borrow_instance(application.physical);
  device->physical_ = application.physical.physical_device;
  const InstanceFunctions& vk = device->instance_->vk;
  require_family(vk, application);
  const DeviceFeatures enabled = enabled_features(vk, application);
  Capabilities& c = device->capabilities_;
  c = read_capabilities(vk, device->physical_, application.physical.api_version, &enabled);
  apply_quirks(c);
  apply_limits(c, options.limits);
  if (!options.ignore_verdicts) apply_what_is_known(c, options.cache_folder);
  if (options.hang_seconds <= 0) device->options_.hang_seconds = c.tuning.hang_seconds;
  device->grant_occupancy();
  device->device_ = application.device;
  device->start(application.queue);
  device->application_.enabled_features = nullptr;  // the chain belonged to the caller
  device->application_.pipeline_cache = {};         // the driver has its own copy now
  return device;
}

void Device::grant_occupancy() {
  float& priority = options_.occupancy_priority;
  if (!(priority >= 0 && priority <= 1))
    throw SettingError("DeviceOptions::occupancy_priority",
                       fmt::format("is {}, beyond 0 and 1", priority), "give one between them");
  if (!capabilities_.occupancy_priority) priority = kNormalOccupancy;
}

void Device::create() {
  const Capabilities& c = capabilities_;
  const VkPhysicalDevice physical = physical_;

  const InstanceFunctions& instance = instance_->vk;
  const std::vector<VkQueueFamilyProperties> families = queue_families(instance, physical);
  const std::optional<uint32_t> family = first_compute_family(families);
  if (!family) {
    throw DeviceError(Kind::kUnavailable, c.name, "has no compute queue", "choose another device");
  }
  const uint32_t queue_family = *family;

  grant_occupancy();
  DeviceFeatures wanted = features_of(c);
  wanted.occupancy_priority = options_.occupancy_priority != kNormalOccupancy;
  wanted.pipeline_executables = options_.pipeline_statistics && c.pipeline_statistics;
  const FeatureStructures features(wanted);
  const std::vector<const char*> extensions = extensions_of(wanted, c.api_version);

  const float priorities[] = {1, 1};
  VkDeviceQueueCreateInfo queues[2] = {{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO},
                                       {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO}};
  queues[0].queueFamilyIndex = queue_family;
  queues[0].queueCount = 1;
  queues[0].pQueuePriorities = queues[1].pQueuePriorities = priorities;
  uint32_t queue_infos = 1;
  std::optional<QueuePlace> second;
  if (options_.second_queue) second = second_compute_queue(families, queue_family);
  if (second && second->family == queue_family) {
    queues[0].queueCount = 2;
  } else if (second) {
    queues[1].queueFamilyIndex = second->family;
    queues[1].queueCount = 1;
    queue_infos = 2;
  }
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &features.head;
  info.queueCreateInfoCount = queue_infos;
  info.pQueueCreateInfos = queues;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  check(create_with_priority(instance, physical, info, &options_.queue_priority, &device_),
        "vkCreateDevice");
  VkQueue queue = VK_NULL_HANDLE;
  vk_ = device_functions(instance, device_);
  vk_.vkGetDeviceQueue(device_, queue_family, 0, &queue);
  if (second) {
    second_queue_family_ = second->family;
    vk_.vkGetDeviceQueue(device_, second->family, second->index, &second_queue_);
  }
  start({.queue = queue, .family = queue_family});
}

void Device::start(const ApplicationQueue& queue) {
  if (!owned_) vk_ = device_functions(instance_->vk, device_);
  options_.debug_labels = options_.debug_labels && has_debug_labels(instance_->vk);
  queue_ = std::make_unique<Queue>(vk_, device_, callbacks(), queue);
  // Timestamps depend on the queue family; the physical device's capabilities describe its best
  // family.
  const std::vector<VkQueueFamilyProperties> families = queue_families(instance_->vk, physical_);
  if (queue.family < families.size())
    capabilities_.timestamp_bits = families[queue.family].timestampValidBits;
  if (capabilities_.timestamp_bits == 0) capabilities_.timestamp_period = 0;
  // The application waits for an adopted device by the tickets of this semaphore.
  if (!owned_ && capabilities_.timeline_semaphores)
    check(queue_->make_timeline(), "vkCreateSemaphore");
  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = queue.family;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  check(vk_.vkCreateCommandPool(device_, &pool, callbacks(), &command_pool_),
        "vkCreateCommandPool");

  memory_ = std::make_unique<Allocator>(*this);
  pipelines_ = std::make_unique<PipelineCache>(*this);
  if (options_.profile) profiler_ = std::make_unique<Profiler>();
}

Device::~Device() {
  if (!device_) return;
  // An adopted device's other queues keep running. Work in flight on this queue ends first, unless
  // the device is lost.
  if (owned_) {
    vk_.vkDeviceWaitIdle(device_);
  } else {
    drain();
  }
  kept_.clear();
  profiler_.reset();
  pipelines_.reset();
  memory_.reset();
  queue_.reset();
  if (command_pool_) vk_.vkDestroyCommandPool(device_, command_pool_, callbacks());
  if (owned_) vk_.vkDestroyDevice(device_, nullptr);
}

void Device::drain() {
  while (queue_) {
    const std::optional<VkResult> result = queue_->wait_next(queue_->last(), UINT64_MAX);
    if (!result || *result != VK_SUCCESS) return;
  }
}

const InstanceFunctions& Device::instance_vk() const { return instance_->vk; }

void Device::require_alive() const {
  if (lost_) {
    throw DeviceError(Kind::kLost, capabilities_.name, "the device was lost earlier",
                      "open it anew; if it happens again, update the driver or use another device");
  }
}

void Device::check(VkResult result, const char* what) {
  if (result >= 0) return;
  if (result == VK_ERROR_DEVICE_LOST) {
    lost_ = true;
    throw DeviceError(Kind::kLost, capabilities_.name,
                      fmt::format("the device was lost in {}", what),
                      "open it anew; if it happens again, update the driver or use another device");
  }
  bool memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
  throw DeviceError(
      memory ? Kind::kOutOfMemory : Kind::kFailed, capabilities_.name,
      fmt::format("{} failed: {} ({})", what, name_of(result), static_cast<int>(result)),
      memory ? "use a smaller model or batch, or a device with more memory" : "");
}

Ticket Device::submit(std::span<const VkCommandBuffer> commands,
                      const SubmissionSemaphores& semaphores) {
  require_alive();
  Ticket ticket = 0;
  check(queue_->submit(commands, semaphores, &ticket), "vkQueueSubmit");
  ++counters_.submissions;
  return ticket;
}

void Device::wait(Ticket ticket) { wait(ticket, UINT64_MAX); }

bool Device::wait(Ticket ticket, uint64_t timeout_ns) {
  require_alive();
  const auto hang_ns = static_cast<uint64_t>(options_.hang_seconds * 1e9);
  const auto start = Clock::now();
  for (;;) {
    const auto passed = std::chrono::nanoseconds(Clock::now() - start).count();
    const uint64_t left = timeout_ns - std::min(timeout_ns, static_cast<uint64_t>(passed));
    const std::optional<VkResult> result = queue_->wait_next(ticket, std::min(left, hang_ns));
    if (!result) return true;
    ++counters_.cpu_waits;
    if (*result == VK_TIMEOUT) {
      if (left < hang_ns) return false;
      lost_ = true;
      throw DeviceError(
          Kind::kLost, capabilities_.name,
          fmt::format("did not finish a submission within {:g} s", options_.hang_seconds),
          "the driver may hang; try another device, or a smaller model");
    }
    check(*result, "vkWaitForFences");
  }
}

bool Device::finished(Ticket ticket) {
  require_alive();
  const VkResult result = queue_->status(ticket);
  check(result, "vkGetFenceStatus");
  return result != VK_NOT_READY;
}

void Device::wait_idle() { wait(queue_->last()); }

Pace Device::pace() const {
  const Tuning& tuning = capabilities_.tuning;
  return {std::max(flops_per_s_.load(), tuning.flops_per_s),
          std::max(bytes_per_s_.load(), tuning.bytes_per_s), tuning.dispatch_s};
}

void Device::observe(uint64_t flops, uint64_t bytes, double seconds) {
  if (seconds < 50e-6) return;  // too short to tell work from overhead
  // Keep the fastest pace seen, though a later program may hold slower kernels: the time allowed
  // for a submission leaves room for that.
  flops_per_s_ = std::max(flops_per_s_.load(), static_cast<double>(flops) / seconds);
  bytes_per_s_ = std::max(bytes_per_s_.load(), static_cast<double>(bytes) / seconds);
}

std::vector<std::string> Device::validation_messages() const {
  std::lock_guard lock(instance_->mutex);
  return instance_->messages;
}

VkCommandBuffer Device::allocate_command_buffer() {
  std::lock_guard lock(pool_mutex_);
  VkCommandBufferAllocateInfo info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
  info.commandPool = command_pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(vk_.vkAllocateCommandBuffers(device_, &info, &commands), "vkAllocateCommandBuffers");
  return commands;
}

void Device::free_command_buffers(std::span<const VkCommandBuffer> commands) {
  if (commands.empty()) return;
  std::lock_guard lock(pool_mutex_);
  if (lost_ && owned_) {
    vk_.vkDeviceWaitIdle(device_);
  } else if (lost_) {
    drain();
  }
  vk_.vkFreeCommandBuffers(device_, command_pool_, static_cast<uint32_t>(commands.size()),
                           commands.data());
}

}  // namespace mulciber
