// Compute pipelines: made at first use, several in parallel, and kept in a cache on disk.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/pipeline_executables.h"
#include "runtime/spirv_order.h"

namespace mulciber {

class Device;

/// A pipeline is a kernel with values for the op's constants.
struct PipelineKey {
  const Kernel* kernel;
  std::vector<std::pair<uint32_t, uint32_t>> constants;  // id, value; sorted
  std::array<uint32_t, 3> grid = {};  // the grid where it exceeds the device's limits; else zeros
  Order order = {};                   // order of workgroups and subgroups
  auto operator<=>(const PipelineKey&) const = default;
};

/// Every specialization constant of a pipeline as id and value; the constants of the runtime and of
/// the row come first.
std::vector<std::pair<uint32_t, uint32_t>> specialization(const PipelineKey& key,
                                                          const Capabilities& device);
/// Whether a row's pipelines require the device's subgroup size and full subgroups.
bool requires_subgroup_size(const Kernel& kernel, const Capabilities& device);

/// The subgroups of a row's workgroups that an Order may renumber on a device: none where it is not
/// certain which invocations form a subgroup.
SubgroupBlocks movable_subgroups(const Kernel& kernel, const Capabilities& device);

/// The descriptor bindings of a row's pipelines: the buffers that are not addresses.
struct DescriptorBinding {
  uint32_t binding;
  VkDescriptorType type;
};
std::vector<DescriptorBinding> descriptor_bindings(const Reflection& reflection);

/// The workgroups to dispatch for a grid: all of it where the device allows that many. Otherwise
/// fewer, and a pipeline with PipelineKey::grid makes each of them do the work of several.
std::array<uint32_t, 3> dispatched_groups(const std::array<uint32_t, 3>& grid,
                                          const Capabilities& device);

struct Pipeline {
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;  // null where all buffers are addresses
};

struct CompiledPipeline {
  double seconds = 0;  // processor time of all threads together
  /// Empty where the device lacks VK_KHR_pipeline_executable_properties.
  std::vector<PipelineExecutable> executables;
};

class PipelineCache {
 public:
  /// Makes a cache of the driver's, or takes the application's.
  explicit PipelineCache(Device& device);
  ~PipelineCache();

  /// Makes the pipelines of `keys` that do not exist yet, in parallel. Throws KernelError naming
  /// the row when the driver refuses one.
  void prepare(std::span<const PipelineKey> keys);
  /// The pipeline of a prepared key; makes it now if it was not prepared.
  const Pipeline& get(const PipelineKey& key);

  /// Sets the order of workgroups for programs recorded from now on, instead of the device's own.
  /// For conformance: results must not depend on it.
  void set_order(const Order& order) { order_ = order; }
  const Order& order() const { return order_; }

  /// Compiles a pipeline anew, whether or not it is cached, and asks the driver for statistics of
  /// it. The device must have been opened with DeviceOptions::pipeline_statistics. Throws as
  /// prepare() does.
  CompiledPipeline compile(const PipelineKey& key);

  /// Path of the cache on disk; empty when there is no folder to write to, or the application keeps
  /// the cache.
  const std::filesystem::path& file() const { return file_; }
  /// Content of the driver's cache; empty where the driver has none.
  std::vector<std::byte> driver_cache();
  /// Writes the cache to a temporary file, then renames it, so that concurrent processes and a
  /// crash leave a whole file. Failure is silent: the cache only saves time.
  void save();

 private:
  struct Layouts {
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };
  Layouts layouts_for(const Kernel& kernel);
  Pipeline create(const PipelineKey& key, VkPipelineCache cache, VkPipelineCreateFlags flags);
  std::vector<std::byte> read_file() const;

  Device& device_;
  std::filesystem::path file_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  std::map<PipelineKey, Pipeline> pipelines_;
  std::map<const Kernel*, Layouts> layouts_;
  Order order_;
  std::atomic<bool> changed_{false};
};

/// DeviceOptions::cache_folder, made if it does not exist; empty when it cannot be made.
std::filesystem::path writable_cache_folder(const std::filesystem::path& folder);

}  // namespace mulciber
