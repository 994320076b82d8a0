// Work cut into slices that fit a frame: runs of programs one after another, recorded node by node
// into an application's command buffers or into our own. The positions of the cuts change nothing
// in the results.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "runtime/memory_barrier.h"
#include "runtime/program.h"
#include "runtime/recorder.h"

namespace mulciber {

struct BufferCopy {
  BufferView from, to;
};

/// One run of a program, with the updates and copies before it and the copies after it. Stages are
/// used again, so that those of later frames allocate nothing.
struct Stage {
  struct Update {
    BufferView to;
    size_t first, count;  // of `words`
  };
  std::vector<Update> updates;
  std::vector<uint32_t> words;     // of all updates
  std::vector<BufferCopy> inputs;  // to other ranges than the updates
  Program* program = nullptr;      // null: nothing runs
  std::vector<BufferCopy> copies;

  /// Makes room for the lists of a usual stage.
  Stage();
  void update(const BufferView& to, std::span<const uint32_t> values);
  /// Empties the stage, and keeps its memory.
  void clear();
};

/// Gives the work, stage after stage.
class StageSource {
 public:
  virtual ~StageSource() = default;
  /// Fills an empty stage with the next one. Returns false where all stages were given, or the next
  /// one depends on stages that have not ended. Programs and buffers live until the source is
  /// destroyed.
  virtual bool next(Stage& stage) = 0;
  /// Tells that the first `stages` stages have ended: what they wrote to mapped memory can be read.
  virtual void ended(uint64_t stages) = 0;
  virtual bool done() const = 0;
};

/// The commands that one call recorded.
struct Slice {
  uint64_t number = 0;  // 1 is the first; 0: there was nothing to record
  uint32_t dispatches = 0;
  double estimated_us = 0;
};

/// The barriers of a slice: earlier work that it waits for, and later work that sees its writes.
struct SliceBorders {
  BarrierScope waits_for, shown_to;
};
SliceBorders slice_borders();

/// Not thread-safe.
class SlicedRun {
 public:
  /// Allocates what slices need, so that record() allocates nothing after the first stage, and
  /// step() no device memory. used: owner of what stages use beside the source, such as weights; it
  /// must not own the device.
  SlicedRun(Device& device, std::unique_ptr<StageSource> source,
            std::shared_ptr<const void> used = {});
  /// Waits for slices that step() submitted. Where slices of record() have not ended, the device
  /// keeps the source and `used`.
  ~SlicedRun();

  /// Records as much as fits the budget, at least one dispatch where there is any. Slices run in
  /// the order of their numbers, each once, in one queue or ordered by semaphores. A slice begins
  /// with a barrier that waits for compute shaders and transfers, and ends with one that makes its
  /// writes visible to compute shaders, transfers and the CPU. Throws SettingError while slices of
  /// step() are under way.
  Slice record(VkCommandBuffer commands, double budget_us);
  /// Tells that slices up to this number have ended on the device. A number at or below an earlier
  /// one changes nothing, nor do numbers of step() whose slices still run. Throws SettingError for
  /// numbers that no slice has, or one that was discarded.
  void completed(uint64_t number);
  /// Takes back a slice that was recorded and never submitted, and those after it: the next slice
  /// begins where it began, and has a number of its own. Throws SettingError for other numbers.
  void discard(uint64_t number);

  struct Step {
    Slice slice;         // number 0: nothing was submitted
    bool waits = false;  // nothing was submitted because earlier slices have not ended
    /// Device::timeline(); reaches `value` when the slice has ended.
    VkSemaphore semaphore = VK_NULL_HANDLE;
    uint64_t value = 0;
  };
  /// Submits as much as fits the budget by the measured times of nodes, and never more than
  /// DeviceOptions::submission_ms. Does not wait. Throws SettingError while slices of record() are
  /// under way.
  Step step(double budget_us, const SubmissionSemaphores& semaphores = {});
  /// Marks slices of step() that have ended. Does not wait.
  void collect();
  /// Waits for slices of step().
  void wait();
  /// Waits for at most `timeout_ns` nanoseconds. Returns whether they have ended.
  bool wait(uint64_t timeout_ns);

  /// Number of stages whose dispatches were all recorded since the last restart.
  uint64_t stages_recorded() const { return position_.stage; }
  /// Starts the source again. Allowed only when done(); numbers of slices continue.
  void restart();
  /// Stops recording, even within a stage.
  void cancel();
  /// Whether nothing is left to record and every slice has ended.
  bool done() const { return recorded_.empty() && (cancelled_ || source_->done()); }

 private:
  /// This constructor completes the object, so that the destructor frees what the public
  /// constructor made before it throws.
  explicit SlicedRun(Device& device) : device_(device) {}
  static constexpr uint32_t kMostNodes = 256;  // nodes per slice
  static constexpr size_t kInFlight = 2;
  static constexpr size_t kTimed = 4;  // slices timed at once; an application may have more
  static constexpr size_t kUsualStages = 8, kUsualSlices = 16;  // under way at once
  struct InFlight {
    uint64_t number;
    Ticket ticket;
  };
  /// The next command to record.
  struct Position {
    uint64_t stage = 0;  // stages before it since the last restart
    bool begun = false;  // the stage's updates and inputs were recorded
    size_t node = 0;     // of the stage's program
  };
  /// The stage at the position; null: the source gives none now.
  const Stage* current_stage();
  Slice record_slice(VkCommandBuffer commands, double budget_us);
  void record_updates(VkCommandBuffer commands, const Stage& stage) const;
  void record_copies(VkCommandBuffer commands, const Stage& stage) const;
  /// A reset query pool for the next slice; null where none is free.
  NodeTimes begin_times(VkCommandBuffer commands);
  void read_times(const NodeTimes& times, double estimated_us);

  Device& device_;
  std::shared_ptr<const void> used_;
  std::unique_ptr<StageSource> source_;
  /// First the stages that were given and have not ended: those of a slice that is discarded are
  /// recorded again, and the source knows nothing of it. Behind them stages to be used again.
  std::vector<Stage> stages_;
  size_t stages_given_ = 0;    // of stages_
  uint64_t stages_ended_ = 0;  // before the first of stages_
  Position position_;
  uint64_t slices_ = 0, slices_ended_ = 0;  // numbers of the last slices
  struct Recorded {
    uint64_t number, stages;
    Position from;
    double estimated_us;  // estimate for its nodes alone
    NodeTimes times;
    const Node *first, *last;  // null: only copies
  };
  /// Makes a call that may find the device lost, and names the slices in flight in the error.
  template <typename Call>
  auto naming_slices(Call&& call) const;
  /// The slice of that number, or the end.
  std::vector<Recorded>::iterator find_recorded(uint64_t number);
  /// Reads the results of slices up to this number, which have ended.
  void end_slices(uint64_t number);
  /// Goes back to where this slice began.
  void rewind(const std::vector<Recorded>::iterator& first);
  std::vector<Recorded> recorded_;  // slices that have not ended, and the stages they complete
  std::vector<VkCommandBuffer> commands_;
  std::vector<VkQueryPool> pools_, free_pools_;
  std::deque<InFlight> in_flight_;
  bool cancelled_ = false;
};

}  // namespace mulciber
