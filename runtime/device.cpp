#include "runtime/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/choices.h"
#include "runtime/deny_list.h"
#include "runtime/instance.h"
#include "runtime/pipeline.h"
#include "runtime/profiler.h"
#include "runtime/queues.h"

namespace mulciber {
namespace {

using Kind = DeviceError::Kind;

struct Found {
  VkPhysicalDevice physical;
  Capabilities capabilities;
};

// Verdicts of the self-test, and rows chosen by measurement.
void apply_what_is_known(Capabilities& device, const std::string& cache_folder) {
  DenyList(device, cache_folder).apply(device);
  const Choices choices(device, cache_folder);
  device.choices = choices.valid();
}

// Best first: hardware before software; among equals the one with more memory, then the driver's
// order.
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
      return a.capabilities.kind < b.capabilities.kind;  // the enum stands best first
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
  device->instance_ = create_instance(device->options_.validate);
  std::vector<Found> found = find_devices(*device->instance_, options);
  const Found& chosen = choose(found, device->options_.device);
  device->capabilities_ = chosen.capabilities;
  if (device->options_.hang_seconds <= 0) {
    device->options_.hang_seconds = chosen.capabilities.tuning.hang_seconds;
  }
  device->create(chosen.physical);
  return device;
}

void Device::create(VkPhysicalDevice physical) {
  physical_ = physical;
  const Capabilities& c = capabilities_;

  uint32_t count = 0;
  const InstanceFunctions& instance = instance_->vk;
  instance.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  auto family = std::find_if(
      families.begin(), families.end(),
      [](const VkQueueFamilyProperties& f) { return f.queueFlags & VK_QUEUE_COMPUTE_BIT; });
  if (family == families.end()) {
    throw DeviceError(Kind::kUnavailable, c.name, "has no compute queue", "choose another device");
  }
  queue_family_ = static_cast<uint32_t>(family - families.begin());

  // Exactly what the capabilities offer is enabled, so that a mask of limits is real.
  std::vector<const char*> extensions;
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  auto enable = [&](bool wanted, auto& structure, uint32_t core_since, const char* extension) {
    if (!wanted) return;
    structure.pNext = features.pNext;
    features.pNext = &structure;
    if (core_since == 0 || c.api_version < core_since) extensions.push_back(extension);
  };
  VkPhysicalDevice16BitStorageFeatures storage16{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  storage16.storageBuffer16BitAccess = VK_TRUE;
  if (c.has(kStorage16)) {
    storage16.pNext = features.pNext;
    features.pNext = &storage16;
  }
  VkPhysicalDevice8BitStorageFeatures storage8{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  storage8.storageBuffer8BitAccess = VK_TRUE;
  enable(c.has(kStorage8), storage8, VK_API_VERSION_1_2, VK_KHR_8BIT_STORAGE_EXTENSION_NAME);
  VkPhysicalDeviceShaderFloat16Int8Features float16{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  float16.shaderFloat16 = VK_TRUE;
  enable(c.has(kFloat16), float16, VK_API_VERSION_1_2, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
  VkPhysicalDeviceBufferDeviceAddressFeatures address{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES};
  address.bufferDeviceAddress = VK_TRUE;
  enable(c.has(kBufferAddress), address, VK_API_VERSION_1_2,
         VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
  VkPhysicalDeviceSubgroupSizeControlFeatures sizes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  sizes.subgroupSizeControl = sizes.computeFullSubgroups = VK_TRUE;
  enable(c.has(kSubgroupSizeControl), sizes, VK_API_VERSION_1_3,
         VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  matrix.cooperativeMatrix = VK_TRUE;
  enable(c.has(kCooperativeMatrix), matrix, 0, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  VkPhysicalDeviceVulkanMemoryModelFeatures model{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
  model.vulkanMemoryModel = VK_TRUE;
  enable(c.has(kCooperativeMatrix), model, VK_API_VERSION_1_2,
         VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);

  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  executables.pipelineExecutableInfo = VK_TRUE;
  enable(options_.pipeline_statistics && c.pipeline_statistics, executables, 0,
         VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);

  const float priorities[] = {1, 1};
  VkDeviceQueueCreateInfo queues[2] = {{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO},
                                       {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO}};
  queues[0].queueFamilyIndex = queue_family_;
  queues[0].queueCount = 1;
  queues[0].pQueuePriorities = queues[1].pQueuePriorities = priorities;
  uint32_t queue_infos = 1;
  std::optional<QueuePlace> second;
  if (options_.second_queue) second = second_compute_queue(families, queue_family_);
  if (second && second->family == queue_family_) {
    queues[0].queueCount = 2;
  } else if (second) {
    queues[1].queueFamilyIndex = second->family;
    queues[1].queueCount = 1;
    queue_infos = 2;
  }
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
  info.pNext = &features;
  info.queueCreateInfoCount = queue_infos;
  info.pQueueCreateInfos = queues;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  check(instance.vkCreateDevice(physical, &info, nullptr, &device_), "vkCreateDevice");
  vk_ = device_functions(instance, device_);
  vk_.vkGetDeviceQueue(device_, queue_family_, 0, &queue_);
  if (second) {
    second_queue_family_ = second->family;
    vk_.vkGetDeviceQueue(device_, second->family, second->index, &second_queue_);
  }

  VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.queueFamilyIndex = queue_family_;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  check(vk_.vkCreateCommandPool(device_, &pool, nullptr, &command_pool_), "vkCreateCommandPool");

  memory_ = std::make_unique<Allocator>(*this);
  pipelines_ = std::make_unique<PipelineCache>(*this);
  if (options_.profile) profiler_ = std::make_unique<Profiler>();
}

Device::~Device() {
  if (!device_) return;
  vk_.vkDeviceWaitIdle(device_);
  profiler_.reset();
  pipelines_.reset();
  memory_.reset();
  for (const Pending& pending : pending_) vk_.vkDestroyFence(device_, pending.fence, nullptr);
  for (VkFence fence : free_fences_) vk_.vkDestroyFence(device_, fence, nullptr);
  if (command_pool_) vk_.vkDestroyCommandPool(device_, command_pool_, nullptr);
  vk_.vkDestroyDevice(device_, nullptr);
}

std::optional<QueuePlace> second_compute_queue(std::span<const VkQueueFamilyProperties> families,
                                               uint32_t first) {
  if (families[first].queueCount >= 2) return QueuePlace{first, 1};
  for (uint32_t i = 0; i < families.size(); ++i) {
    if (i != first && (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) return QueuePlace{i, 0};
  }
  return std::nullopt;
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

Ticket Device::submit(std::span<const VkCommandBuffer> commands) {
  require_alive();
  std::lock_guard lock(submit_mutex_);
  VkFence fence = VK_NULL_HANDLE;
  if (!free_fences_.empty()) {
    fence = free_fences_.back();
    free_fences_.pop_back();
  } else {
    VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    check(vk_.vkCreateFence(device_, &info, nullptr, &fence), "vkCreateFence");
  }
  VkSubmitInfo submission{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  submission.commandBufferCount = static_cast<uint32_t>(commands.size());
  submission.pCommandBuffers = commands.data();
  VkResult result = vk_.vkQueueSubmit(queue_, 1, &submission, fence);
  if (result != VK_SUCCESS) {
    free_fences_.push_back(fence);
    check(result, "vkQueueSubmit");
  }
  ++counters_.submissions;
  pending_.push_back({++last_ticket_, fence});
  return last_ticket_;
}

void Device::wait(Ticket ticket) {
  require_alive();
  std::lock_guard lock(submit_mutex_);
  while (done_ticket_ < ticket && !pending_.empty()) {
    Pending& front = pending_.front();
    ++counters_.host_waits;
    VkResult result = vk_.vkWaitForFences(device_, 1, &front.fence, VK_TRUE,
                                          static_cast<uint64_t>(options_.hang_seconds * 1e9));
    if (result == VK_TIMEOUT) {
      lost_ = true;
      throw DeviceError(
          Kind::kLost, capabilities_.name,
          fmt::format("did not finish a submission within {:g} s", options_.hang_seconds),
          "the driver may hang; try another device, or a smaller model");
    }
    check(result, "vkWaitForFences");
    check(vk_.vkResetFences(device_, 1, &front.fence), "vkResetFences");
    done_ticket_ = front.ticket;
    free_fences_.push_back(front.fence);
    pending_.pop_front();
  }
}

bool Device::finished(Ticket ticket) {
  require_alive();
  std::lock_guard lock(submit_mutex_);
  for (const Pending& pending : pending_) {
    if (pending.ticket > ticket) break;
    VkResult result = vk_.vkGetFenceStatus(device_, pending.fence);
    if (result == VK_NOT_READY) return false;
    check(result, "vkGetFenceStatus");
  }
  return true;
}

void Device::wait_idle() { wait(last_ticket_); }

Pace Device::pace() const {
  const Tuning& tuning = capabilities_.tuning;
  return {std::max(flops_per_s_.load(), tuning.flops_per_s),
          std::max(bytes_per_s_.load(), tuning.bytes_per_s), tuning.dispatch_s};
}

void Device::observe(uint64_t flops, uint64_t bytes, double seconds) {
  if (seconds < 50e-6) return;  // too short to tell work from overhead
  // The best seen, for a later program may hold slower kernels: the time allowed leaves room for
  // that.
  flops_per_s_ = std::max(flops_per_s_.load(), static_cast<double>(flops) / seconds);
  bytes_per_s_ = std::max(bytes_per_s_.load(), static_cast<double>(bytes) / seconds);
}

std::vector<std::string> Device::validation_messages() const {
  std::lock_guard lock(instance_->mutex);
  return instance_->messages;
}

VkCommandBuffer Device::allocate_command_buffer() {
  std::lock_guard lock(submit_mutex_);
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
  std::lock_guard lock(submit_mutex_);
  if (lost_) vk_.vkDeviceWaitIdle(device_);
  vk_.vkFreeCommandBuffers(device_, command_pool_, static_cast<uint32_t>(commands.size()),
                           commands.data());
}

}  // namespace mulciber
