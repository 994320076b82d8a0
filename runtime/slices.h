// Work cut into slices that fit a frame: runs of programs one after another, recorded node by node
// into a host's command buffers or into our own. Where it is cut changes nothing in the results.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/memory_barrier.h"
#include "runtime/program.h"
#include "runtime/recorder.h"

namespace mulciber {

struct BufferUpdate {
  BufferView to;
  std::vector<uint32_t> words;
};
struct BufferCopy {
  BufferView from, to;
};

/// One run of a program, what is written and copied before it, and what is copied after.
struct Stage {
  std::vector<BufferUpdate> updates = {};
  std::vector<BufferCopy> inputs = {};  // to other places than the updates
  Program* program = nullptr;           // null: nothing runs
  std::vector<BufferCopy> copies = {};
};

/// What is to be done, stage after stage.
class StageSource {
 public:
  virtual ~StageSource() = default;
  /// The stage behind the last one given. No value: all is given, or what comes depends on stages
  /// that have not ended. Programs and buffers live until the source is destroyed.
  virtual std::optional<Stage> next() = 0;
  /// The first `stages` stages have ended, and what they wrote to mapped memory can be read.
  virtual void ended(uint64_t stages) = 0;
  virtual bool done() const = 0;
};

/// What was recorded by one call.
struct Slice {
  uint64_t number = 0;  // 1 is the first; 0: there was nothing to record
  uint32_t dispatches = 0;
  double estimated_us = 0;
};

/// Earlier work that a slice waits for, and later work that sees what it wrote.
struct SliceBorders {
  BarrierScope waits_for, shown_to;
};
SliceBorders slice_borders();

/// Not thread-safe.
class SlicedRun {
 public:
  /// Allocates what step() needs, so that steps allocate nothing.
  SlicedRun(Device& device, std::unique_ptr<StageSource> source);
  /// Waits for slices that step() submitted. What record() recorded must have ended.
  ~SlicedRun();

  /// Records what fits the budget, at least one dispatch where there is any. Slices run in the
  /// order of their numbers, each once, in one queue or behind one another by semaphores. They
  /// begin with a barrier that waits for compute shaders and transfers, and end with one that makes
  /// what they wrote visible to compute shaders, transfers and the host.
  Slice record(VkCommandBuffer commands, double budget_us);
  /// Slices up to this number have ended on the device.
  void completed(uint64_t number);

  struct Step {
    Slice slice;         // number 0: nothing was submitted
    bool waits = false;  // nothing was, because earlier slices have not ended
    /// Device::timeline(), which reaches `value` when the slice has ended.
    VkSemaphore semaphore = VK_NULL_HANDLE;
    uint64_t value = 0;
  };
  /// Submits what is expected to fit the budget, by the times that nodes took before, and never
  /// more than DeviceOptions::submission_ms. Does not wait.
  Step step(double budget_us, const SubmissionSemaphores& semaphores = {});
  /// Takes note of slices of step() that have ended. Does not wait.
  void collect();
  /// Waits for them.
  void wait();

  /// Stages of which every dispatch was recorded, since the last restart.
  uint64_t stages_recorded() const { return stages_recorded_; }
  /// The source begins anew. Only of a run that is done; numbers of slices go on.
  void restart();
  /// Nothing more is recorded, not even the rest of a stage that was begun.
  void cancel();
  /// Nothing is left to be recorded, and every slice has ended.
  bool done() const { return recorded_.empty() && (cancelled_ || source_->done()); }

 private:
  /// Complete, so that the destructor gives back what the public constructor has made when it
  /// throws.
  explicit SlicedRun(Device& device) : device_(device) {}
  static constexpr uint32_t kMostNodes = 256;  // of a slice
  static constexpr size_t kInFlight = 2;
  static constexpr size_t kTimed = 4;  // slices that may be timed at once; a host may have more
  struct InFlight {
    uint64_t number;
    Ticket ticket;
  };
  void record_updates(VkCommandBuffer commands) const;
  void record_copies(VkCommandBuffer commands) const;
  /// A pool for the slice that comes, reset; null: none is free.
  NodeTimes begin_times(VkCommandBuffer commands);
  void read_times(const NodeTimes& times, double estimated_us);

  Device& device_;
  std::unique_ptr<StageSource> source_;
  std::optional<Stage> stage_;
  size_t node_ = 0;  // of the stage's program, to be recorded next
  uint64_t stages_recorded_ = 0, slices_ = 0;
  struct Recorded {
    uint64_t number, stages;
    double estimated_us;  // of its nodes alone
    NodeTimes times;
    const Node *first, *last;  // null: copies alone
  };
  /// Calls what may find the device lost, and names the slices in flight in the error.
  template <typename Call>
  auto naming_slices(Call&& call) const;
  std::deque<Recorded> recorded_;  // slices that have not ended, and the stages they complete
  std::vector<VkCommandBuffer> commands_;
  std::vector<VkQueryPool> pools_, free_pools_;
  std::deque<InFlight> in_flight_;
  bool cancelled_ = false;
};

}  // namespace mulciber
