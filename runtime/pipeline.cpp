#include "runtime/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/hash.h"
#include "base/replace_file.h"
#include "runtime/device.h"
#include "runtime/spirv_grid.h"
#include "shaders/include/interface.h"

namespace mulciber {
namespace {

// This header precedes the driver's own, so that a truncated, foreign or damaged file never reaches
// the driver.
struct FileHeader {
  char magic[8] = {'M', 'U', 'L', 'C', 'P', 'I', 'P', '1'};
  uint32_t vendor = 0, device = 0, driver_version = 0, reserved = 0;
  uint8_t uuid[VK_UUID_SIZE] = {};
  uint64_t bytes = 0;
  uint64_t checksum = 0;
};

template <typename T>
std::string_view text_of(const T* first, size_t count) {
  return {reinterpret_cast<const char*>(first), count * sizeof(T)};
}

FileHeader header_for(const Capabilities& c, std::span<const std::byte> bytes) {
  FileHeader header;
  header.vendor = c.vendor_id;
  header.device = c.device_id;
  header.driver_version = c.packed_driver_version;
  std::copy(c.pipeline_cache_uuid.begin(), c.pipeline_cache_uuid.end(), header.uuid);
  header.bytes = bytes.size();
  Fnv1a hash;
  hash.add(text_of(bytes.data(), bytes.size()));
  header.checksum = hash.value();
  return header;
}

std::string hex(std::span<const uint8_t> bytes) {
  std::string text;
  for (uint8_t b : bytes) text += fmt::format("{:02x}", b);
  return text;
}

}  // namespace

std::filesystem::path writable_cache_folder(const std::filesystem::path& folder) {
  if (folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? std::filesystem::path() : folder;
}

PipelineCache::PipelineCache(Device& device)
    : device_(device), cache_(device.application().pipeline_cache_handle) {
  if (cache_) return;  // the application reads and writes its content
  const Capabilities& c = device.capabilities();
  if (std::filesystem::path folder = writable_cache_folder(device.options().cache_folder);
      !folder.empty()) {
    file_ = folder / fmt::format("pipelines-{:08x}-{:08x}-{}.bin", c.vendor_id, c.device_id,
                                 hex(c.pipeline_cache_uuid));
  }
  std::vector<std::byte> bytes = device.application().pipeline_cache;
  if (bytes.empty()) bytes = read_file();
  VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = bytes.size();
  info.pInitialData = bytes.data();
  if (device.vk().vkCreatePipelineCache(device.handle(), &info, device.callbacks(), &cache_) !=
      VK_SUCCESS) {
    // The driver rejected its own earlier data: start with an empty cache.
    info.initialDataSize = 0;
    device.check(
        device.vk().vkCreatePipelineCache(device.handle(), &info, device.callbacks(), &cache_),
        "vkCreatePipelineCache");
  }
}

PipelineCache::~PipelineCache() {
  save();
  const DeviceFunctions& vk = device_.vk();
  for (const auto& [key, pipeline] : pipelines_) {
    vk.vkDestroyPipeline(device_.handle(), pipeline.pipeline, device_.callbacks());
  }
  for (const auto& [kernel, layouts] : layouts_) {
    if (layouts.pipeline)
      vk.vkDestroyPipelineLayout(device_.handle(), layouts.pipeline, device_.callbacks());
    if (layouts.set)
      vk.vkDestroyDescriptorSetLayout(device_.handle(), layouts.set, device_.callbacks());
  }
  if (cache_ && cache_ != device_.application().pipeline_cache_handle)
    vk.vkDestroyPipelineCache(device_.handle(), cache_, device_.callbacks());
}

std::vector<std::byte> PipelineCache::read_file() const {
  if (file_.empty()) return {};
  std::error_code error;
  uint64_t size = std::filesystem::file_size(file_, error);
  constexpr uint64_t kLargest = 256ull << 20;  // upper bound on the bytes read at start
  if (error || size <= sizeof(FileHeader) || size > kLargest) return {};
  std::ifstream in(file_, std::ios::binary);
  FileHeader header;
  in.read(reinterpret_cast<char*>(&header), sizeof(header));
  std::vector<std::byte> bytes(size - sizeof(header));
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!in) return {};
  FileHeader expected = header_for(device_.capabilities(), bytes);
  if (std::memcmp(&header, &expected, sizeof(header)) != 0) return {};
  return bytes;
}

std::vector<std::byte> PipelineCache::driver_cache() {
  std::lock_guard lock(mutex_);
  size_t size = 0;
  const DeviceFunctions& vk = device_.vk();
  if (vk.vkGetPipelineCacheData(device_.handle(), cache_, &size, nullptr) != VK_SUCCESS) return {};
  std::vector<std::byte> bytes(size);
  if (vk.vkGetPipelineCacheData(device_.handle(), cache_, &size, bytes.data()) != VK_SUCCESS)
    return {};
  bytes.resize(size);
  return bytes;
}

void PipelineCache::save() {
  if (file_.empty() || !changed_.exchange(false)) return;
  const std::vector<std::byte> bytes = driver_cache();
  if (bytes.empty()) return;
  FileHeader header = header_for(device_.capabilities(), bytes);
  std::string file(text_of(&header, 1));
  file += text_of(bytes.data(), bytes.size());
  // If the cache cannot be written, the next start compiles again.
  (void)replace_file(file_, file);
}

std::vector<std::pair<uint32_t, uint32_t>> specialization(const PipelineKey& key,
                                                          const Capabilities& device) {
  const Kernel& kernel = *key.kernel;
  std::vector<std::pair<uint32_t, uint32_t>> constants = {
      {CONSTANT_LOCAL_SIZE, local_size(kernel, device)},
      {CONSTANT_SUBGROUP_SIZE, device.subgroup_size}};
  for (const auto& [constant, value] : kernel.constants) {
    const auto id = static_cast<uint32_t>(constant);
    if (id > CONSTANT_SUBGROUP_SIZE && id < kFirstHostFact) constants.emplace_back(id, value);
  }
  constants.insert(constants.end(), key.constants.begin(), key.constants.end());
  return constants;
}

bool requires_subgroup_size(const Kernel& kernel, const Capabilities& device) {
  return device.has(kSubgroupSizeControl) && local_size(kernel, device) % device.subgroup_size == 0;
}

SubgroupBlocks movable_subgroups(const Kernel& kernel, const Capabilities& device) {
  const bool counts_on_size =
      kernel.needs & (kSubgroupArithmetic | kSubgroupShuffle | kSubgroupMatrices);
  if (counts_on_size && !requires_subgroup_size(kernel, device)) return {};
  return {local_size(kernel, device) / device.subgroup_size, device.subgroup_size};
}

std::vector<DescriptorBinding> descriptor_bindings(const Reflection& reflection) {
  std::vector<DescriptorBinding> bindings;
  for (uint32_t i = 0; i < reflection.buffer_count; ++i) {
    if (std::ranges::binary_search(reflection.texels, i))
      bindings.push_back({i, VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER});
    else if (!reflection.buffer_address)
      bindings.push_back({i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER});
  }
  return bindings;
}

std::array<uint32_t, 3> dispatched_groups(const std::array<uint32_t, 3>& grid,
                                          const Capabilities& device) {
  std::array<uint32_t, 3> groups = grid;
  for (int axis = 0; axis < 3; ++axis)
    groups[axis] = std::min(groups[axis], device.max_groups[axis]);
  return groups;
}

PipelineCache::Layouts PipelineCache::layouts_for(const Kernel& kernel) {
  std::lock_guard lock(mutex_);
  if (auto known = layouts_.find(&kernel); known != layouts_.end() && known->second.pipeline)
    return known->second;
  const DeviceFunctions& vk = device_.vk();
  const Reflection& reflection = kernel.reflection;
  // Stored before it is complete, so that objects made before a failing call are destroyed with the
  // cache.
  Layouts& layouts = layouts_[&kernel];
  const std::vector<DescriptorBinding> descriptors = descriptor_bindings(reflection);
  if (!layouts.set && !descriptors.empty()) {
    std::vector<VkDescriptorSetLayoutBinding> bindings;
    for (const DescriptorBinding& descriptor : descriptors) {
      bindings.push_back(
          {descriptor.binding, descriptor.type, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
    }
    VkDescriptorSetLayoutCreateInfo info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    info.bindingCount = static_cast<uint32_t>(bindings.size());
    info.pBindings = bindings.data();
    device_.check(
        vk.vkCreateDescriptorSetLayout(device_.handle(), &info, device_.callbacks(), &layouts.set),
        "vkCreateDescriptorSetLayout");
  }
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, reflection.push_constant_bytes};
  VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  info.setLayoutCount = layouts.set ? 1 : 0;
  info.pSetLayouts = &layouts.set;
  info.pushConstantRangeCount = range.size > 0 ? 1 : 0;
  info.pPushConstantRanges = &range;
  device_.check(
      vk.vkCreatePipelineLayout(device_.handle(), &info, device_.callbacks(), &layouts.pipeline),
      "vkCreatePipelineLayout");
  return layouts;
}

Pipeline PipelineCache::create(const PipelineKey& key, VkPipelineCache cache,
                               VkPipelineCreateFlags flags) {
  const Kernel& kernel = *key.kernel;
  const Capabilities& c = device_.capabilities();
  const DeviceFunctions& vk = device_.vk();
  Layouts layouts = layouts_for(kernel);

  std::vector<uint32_t> values;
  std::vector<VkSpecializationMapEntry> entries;
  for (const auto& [id, value] : specialization(key, c)) {
    entries.push_back({id, static_cast<uint32_t>(values.size() * 4), 4});
    values.push_back(value);
  }
  VkSpecializationInfo specialization_info{static_cast<uint32_t>(entries.size()), entries.data(),
                                           values.size() * 4, values.data()};

  std::vector<uint32_t> reordered, spread;
  std::span<const uint32_t> code = kernel.spirv;
  if (key.order != Order{})
    code = reordered = reorder(code, key.order, movable_subgroups(kernel, c));
  if (key.grid[0] != 0) code = spread = spread_grid(code, key.grid, dispatched_groups(key.grid, c));
  VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module_info.codeSize = code.size() * 4;
  module_info.pCode = code.data();
  VkShaderModule module = VK_NULL_HANDLE;
  device_.check(
      vk.vkCreateShaderModule(device_.handle(), &module_info, device_.callbacks(), &module),
      "vkCreateShaderModule");

  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required{
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO};
  required.requiredSubgroupSize = c.subgroup_size;
  VkComputePipelineCreateInfo info{VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization_info;
  info.layout = layouts.pipeline;
  info.flags = flags;
  if (requires_subgroup_size(kernel, c)) {
    info.stage.pNext = &required;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  Pipeline result{VK_NULL_HANDLE, layouts.pipeline, layouts.set};
  VkResult status = vk.vkCreateComputePipelines(device_.handle(), cache, 1, &info,
                                                device_.callbacks(), &result.pipeline);
  vk.vkDestroyShaderModule(device_.handle(), module, device_.callbacks());
  // Neither error is the row's fault.
  if (status == VK_ERROR_DEVICE_LOST || status == VK_ERROR_OUT_OF_HOST_MEMORY ||
      status == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    device_.check(status, "vkCreateComputePipelines");
  }
  if (status != VK_SUCCESS) {
    throw KernelError(
        kernel.id,
        fmt::format("{} could not make the pipeline ({})", c.driver_name, static_cast<int>(status)),
        "update the driver, or take the feature away with limits");
  }
  ++device_.counters().pipelines;
  return result;
}

void PipelineCache::prepare(std::span<const PipelineKey> keys) {
  std::vector<PipelineKey> missing;
  {
    std::lock_guard lock(mutex_);
    for (const PipelineKey& key : keys) {
      if (!pipelines_.count(key)) missing.push_back(key);
    }
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  if (missing.empty()) return;

  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  auto work = [&] {
    for (size_t i; (i = next++) < missing.size();) {
      try {
        Pipeline made = create(missing[i], cache_, 0);
        std::lock_guard lock(mutex_);
        // Another thread may have made this pipeline meanwhile.
        if (!pipelines_.emplace(missing[i], made).second)
          device_.vk().vkDestroyPipeline(device_.handle(), made.pipeline, device_.callbacks());
        changed_ = true;
      } catch (...) {
        std::lock_guard lock(mutex_);
        failure = std::current_exception();
      }
    }
  };
  const uint32_t most = device_.adopted() ? device_.application().pipeline_threads
                                          : std::thread::hardware_concurrency();
  const size_t threads = std::min<size_t>(missing.size(), std::max(1u, most));
  std::vector<std::thread> pool;
  for (size_t i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

const Pipeline& PipelineCache::get(const PipelineKey& key) {
  prepare({&key, 1});
  std::lock_guard lock(mutex_);
  return pipelines_.at(key);
}

}  // namespace mulciber
