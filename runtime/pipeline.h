// Compute pipelines: made when first needed, several at a time, kept in a cache on disk.
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
  std::array<uint32_t, 3> grid = {};  // where it passes what the device allows; else zeros
  Order order = {};                   // of workgroups and subgroups
  auto operator<=>(const PipelineKey&) const = default;
};

/// Every specialization constant of a pipeline: id and value, those of the runtime and of the row
/// first.
std::vector<std::pair<uint32_t, uint32_t>> specialization(const PipelineKey& key,
                                                          const Capabilities& device);
/// Whether a row's pipelines are made with the device's subgroup size required, and with full
/// subgroups.
bool requires_subgroup_size(const Kernel& kernel, const Capabilities& device);

/// The subgroups of a row's workgroups on a device that an Order moves: none where subgroup
/// operations would be done by invocations whose numbers are not certain.
SubgroupBlocks movable_subgroups(const Kernel& kernel, const Capabilities& device);

/// What a set of a row's pipelines has: its buffers that are not addresses, by binding.
struct DescriptorBinding {
  uint32_t binding;
  VkDescriptorType type;
};
std::vector<DescriptorBinding> descriptor_bindings(const Reflection& reflection);

/// What is dispatched of a grid: all of it where the device allows that many workgroups. Where not,
/// a pipeline of that PipelineKey::grid does the rest in the same workgroups.
std::array<uint32_t, 3> dispatched_groups(const std::array<uint32_t, 3>& grid,
                                          const Capabilities& device);

struct Pipeline {
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;  // null where all buffers come as addresses
};

struct CompiledPipeline {
  double seconds = 0;  // of processor time, all threads together
  /// Empty where the device lacks VK_KHR_pipeline_executable_properties.
  std::vector<PipelineExecutable> executables;
};

class PipelineCache {
 public:
  explicit PipelineCache(Device& device);
  ~PipelineCache();

  /// Makes those of `keys` that do not exist yet, in parallel. Throws KernelError naming the row
  /// when the driver refuses one.
  void prepare(std::span<const PipelineKey> keys);
  /// The pipeline of a prepared key (made now when it was not).
  const Pipeline& get(const PipelineKey& key);

  /// The order of programs that are recorded from now on; the device's own unless it is set. For
  /// conformance: results must not depend on it.
  void set_order(const Order& order) { order_ = order; }
  const Order& order() const { return order_; }

  /// Compiles a pipeline anew, whatever the cache holds, and asks the driver what became of it. The
  /// device must have been opened with DeviceOptions::pipeline_statistics. Throws as prepare().
  CompiledPipeline compile(const PipelineKey& key);

  /// Where the cache stands on disk; empty when there is no folder to write to.
  const std::filesystem::path& file() const { return file_; }
  /// The driver's cache; empty where it has none.
  std::vector<std::byte> driver_cache();
  /// Writes it to disk: to a file beside it first, then renamed, so that processes
  /// at the same time and a crash leave a whole file. Failure is silent: the cache only saves time.
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

/// DeviceOptions::cache_folder, which is made where it is not there; empty when it cannot be.
std::filesystem::path writable_cache_folder(const std::filesystem::path& folder);

}  // namespace mulciber
