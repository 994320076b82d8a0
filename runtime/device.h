// A Vulkan device: choice, creation, submission, and the objects that live as long as it does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mulciber/device.h"
#include "mulciber/error.h"
#include "runtime/capabilities.h"
#include "runtime/memory.h"
#include "runtime/queue.h"
#include "runtime/transfer.h"
#include "runtime/vulkan.h"

namespace mulciber {

class PipelineCache;
class Profiler;

/// Everything the runtime does that a decode step must not do, counted, so that a test can look.
struct Counters {
  std::atomic<uint64_t> allocations{0};      // device memory handed out
  std::atomic<uint64_t> command_buffers{0};  // recorded
  std::atomic<uint64_t> descriptor_writes{0};
  std::atomic<uint64_t> pipelines{0};  // created
  std::atomic<uint64_t> submissions{0};
  std::atomic<uint64_t> host_waits{0};
};

/// How fast the device works: cautious guesses that replays correct. Bounds submissions, never
/// results.
struct Pace {
  double flops_per_s;
  double bytes_per_s;
  double dispatch_s;
};

class Device {
 public:
  /// Capabilities of every device, best first, in the order that indices name them.
  /// Throws DeviceError when there is no Vulkan loader or no driver.
  static std::vector<Capabilities> enumerate(const DeviceOptions& options);
  /// Throws DeviceError when nothing matches, naming what is there.
  static std::unique_ptr<Device> open(const DeviceOptions& options);
  /// As mulciber::adopt_device().
  static std::unique_ptr<Device> adopt(const HostDevice& host, const DeviceOptions& options);
  ~Device();

  const Capabilities& capabilities() const { return capabilities_; }
  const DeviceOptions& options() const { return options_; }
  Allocator& memory() { return *memory_; }
  PipelineCache& pipelines() { return *pipelines_; }
  /// Null unless DeviceOptions::profile.
  Profiler* profiler() { return profiler_.get(); }
  Counters& counters() { return counters_; }

  /// Submits command buffers in order, after everything submitted before. Returns at once.
  Ticket submit(std::span<const VkCommandBuffer> commands,
                const SubmissionSemaphores& semaphores = {});
  /// Waits for a submission (and all before it). Throws DeviceError kLost when the device is lost
  /// or a submission takes longer than DeviceOptions::hang_seconds; from then on every call throws
  /// it.
  void wait(Ticket ticket);
  bool finished(Ticket ticket);
  void wait_idle();
  Pace pace() const;
  /// Takes note of what a replay did and how long it took.
  void observe(uint64_t flops, uint64_t bytes, double seconds);
  /// How much longer slices take than their dispatches, at least 1: by what stands between them,
  /// by other work that the device does meanwhile. Slices keep it (runtime/slices.h).
  std::atomic<double>& slice_stretch() { return slice_stretch_; }
  /// Throws the sticky error if the device was lost before.
  void require_alive() const;
  /// Turns a VkResult into the typed error; records a lost device. `what`: the call, for the
  /// message.
  void check(VkResult result, const char* what);

  /// From now on programs note there what they ask of selection; null: no longer. Not while
  /// programs are built.
  void watch_selection(std::shared_ptr<AskedProblems> asked) {
    capabilities_.asked = std::move(asked);
  }

  /// Validation messages so far (empty without `validate`).
  std::vector<std::string> validation_messages() const;

  VkDevice handle() const { return device_; }
  VkPhysicalDevice physical() const { return physical_; }
  /// Of an adopted device: a timeline semaphore that reaches a submission's ticket when it has
  /// ended; null where that is not enabled.
  VkSemaphore timeline() const { return queue_->timeline(); }
  uint32_t queue_family() const { return queue_->family(); }
  /// A queue beside the one of submit(): null unless DeviceOptions::second_queue asked for it and
  /// the device has one. Whoever uses it synchronizes it, and has ended its work before the device
  /// is destroyed.
  VkQueue second_queue() const { return second_queue_; }
  uint32_t second_queue_family() const { return second_queue_family_; }
  const DeviceFunctions& vk() const { return vk_; }
  const InstanceFunctions& instance_vk() const;
  bool adopted() const { return !owned_; }
  /// What the host of an adopted device gave; empty for others.
  const HostDevice& host() const { return host_; }
  VkCommandBuffer allocate_command_buffer();
  /// On a lost device that still works at something, blocks until it does not: memory in use must
  /// stay.
  void free_command_buffers(std::span<const VkCommandBuffer> commands);

 private:
  Device() = default;
  void create();
  /// DeviceOptions::occupancy_priority becomes what the device gives.
  void grant_occupancy();
  /// What stands on a device, whoever made it.
  void start(const HostQueue& queue);
  /// Waits for what is in flight, unless the device is lost.
  void drain();

  DeviceOptions options_;
  Capabilities capabilities_;
  Counters counters_;
  std::shared_ptr<struct InstanceHandle> instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  bool owned_ = true;  // the VkDevice is destroyed with this
  HostDevice host_;    // of one that is not
  VkQueue second_queue_ = VK_NULL_HANDLE;
  uint32_t second_queue_family_ = 0;
  DeviceFunctions vk_{};
  VkCommandPool command_pool_ = VK_NULL_HANDLE;

  std::mutex pool_mutex_;  // of the command pool
  std::atomic<bool> lost_{false};
  std::atomic<double> flops_per_s_{0}, bytes_per_s_{0}, slice_stretch_{1};

  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Allocator> memory_;
  std::unique_ptr<PipelineCache> pipelines_;
  std::unique_ptr<Profiler> profiler_;
};

}  // namespace mulciber
