// A Vulkan device: choice, creation, submission, and the objects that live as long as it does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
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

/// Counts what the runtime does and a decode step must not do, so that tests can check it.
struct Counters {
  std::atomic<uint64_t> allocations{0};      // allocations of device memory
  std::atomic<uint64_t> command_buffers{0};  // command buffers recorded
  std::atomic<uint64_t> descriptor_writes{0};
  std::atomic<uint64_t> pipelines{0};  // pipelines created
  std::atomic<uint64_t> submissions{0};
  std::atomic<uint64_t> cpu_waits{0};
};

/// Speed of the device: cautious guesses that replays correct. Bounds submissions, never results.
struct Pace {
  double flops_per_s;
  double bytes_per_s;
  double dispatch_s;
};

class Device {
 public:
  /// Capabilities of every device, best first; an index names a device in this order.
  /// Throws DeviceError when there is no Vulkan loader or no driver.
  static std::vector<Capabilities> enumerate(const DeviceOptions& options);
  /// Throws DeviceError when no device matches, naming the devices there are.
  static std::unique_ptr<Device> open(const DeviceOptions& options);
  /// Does the work of mulciber::adopt_device().
  static std::unique_ptr<Device> adopt(const ApplicationDevice& application,
                                       const DeviceOptions& options);
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
  /// Waits for a submission and all before it. Throws DeviceError kLost when the device is lost or
  /// a submission takes longer than DeviceOptions::hang_seconds; from then on every call throws
  /// that error.
  void wait(Ticket ticket);
  /// Waits for at most `timeout_ns` nanoseconds. Returns whether they have ended; throws as wait().
  bool wait(Ticket ticket, uint64_t timeout_ns);
  bool finished(Ticket ticket);
  void wait_idle();
  Pace pace() const;
  /// Records the work and time of a replay, to correct the pace.
  void observe(uint64_t flops, uint64_t bytes, double seconds);
  /// Factor, at least 1, by which slices take longer than their dispatches: because of barriers and
  /// copies between the dispatches, and of other work on the device. Slices update it
  /// (runtime/slices.h).
  std::atomic<double>& slice_stretch() { return slice_stretch_; }
  /// Throws the sticky error if the device was lost before.
  void require_alive() const;
  /// Throws the typed error for a failed VkResult and records a lost device. `what`: the call, for
  /// the message.
  void check(VkResult result, const char* what);

  /// Lets programs built from now on record in `asked` what they ask of selection; null ends this.
  /// Must not be called while programs are built.
  void watch_selection(std::shared_ptr<AskedProblems> asked) {
    capabilities_.asked = std::move(asked);
  }

  /// Validation messages so far (empty without `validate`).
  std::vector<std::string> validation_messages() const;

  VkDevice handle() const { return device_; }
  VkPhysicalDevice physical() const { return physical_; }
  /// A timeline semaphore of an adopted device, which reaches a submission's ticket when the
  /// submission has ended; null where timeline semaphores are not enabled.
  VkSemaphore timeline() const { return queue_->timeline(); }
  uint32_t queue_family() const { return queue_->family(); }
  /// A queue beside the one of submit(): null unless DeviceOptions::second_queue asked for it and
  /// the device has one. Its user synchronizes access to it and ends its work before the device is
  /// destroyed.
  VkQueue second_queue() const { return second_queue_; }
  uint32_t second_queue_family() const { return second_queue_family_; }
  const DeviceFunctions& vk() const { return vk_; }
  const InstanceFunctions& instance_vk() const;
  bool adopted() const { return !owned_; }
  /// What calls that make and destroy objects of the device are given; null: the driver's own.
  const VkAllocationCallbacks* callbacks() const { return application_.allocation_callbacks; }
  /// The application's description of an adopted device; empty for other devices.
  const ApplicationDevice& application() const { return application_; }
  VkCommandBuffer allocate_command_buffer();
  /// Keeps what the device may still use, until the device is destroyed and work in flight has
  /// ended. The object must not own the device.
  void keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }
  /// Frees command buffers. On a lost device that still works, blocks until it stops, because
  /// memory in use must stay.
  void free_command_buffers(std::span<const VkCommandBuffer> commands);

 private:
  Device() = default;
  void create();
  /// Sets DeviceOptions::occupancy_priority to what the device grants.
  void grant_occupancy();
  /// Makes the objects that every device has, opened or adopted.
  void start(const ApplicationQueue& queue);
  /// Waits for work in flight, unless the device is lost.
  void drain();

  DeviceOptions options_;
  Capabilities capabilities_;
  Counters counters_;
  std::shared_ptr<struct InstanceHandle> instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  bool owned_ = true;                  // the VkDevice is destroyed with this
  ApplicationDevice application_;      // describes a device that is not owned
  VkAllocationCallbacks callbacks_{};  // a copy of the application's
  VkQueue second_queue_ = VK_NULL_HANDLE;
  uint32_t second_queue_family_ = 0;
  DeviceFunctions vk_{};
  VkCommandPool command_pool_ = VK_NULL_HANDLE;

  std::mutex pool_mutex_;  // guards the command pool
  std::atomic<bool> lost_{false};
  std::atomic<double> flops_per_s_{0}, bytes_per_s_{0}, slice_stretch_{1};

  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Allocator> memory_;
  std::unique_ptr<PipelineCache> pipelines_;
  std::unique_ptr<Profiler> profiler_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace mulciber
