// Command buffers of a program: barriers from byte ranges, one buffer per layer, replayed in
// submissions bounded by time.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline.h"
#include "runtime/program.h"

namespace mulciber {

/// The pipeline that a node is dispatched with on a device.
PipelineKey pipeline_key(const Node& node, const Capabilities& device);

struct ResolvedUse {
  BufferView view;
  Access access;
};

/// A node whose tensors have their final places.
struct ResolvedNode {
  const Node* node = nullptr;
  std::vector<ResolvedUse> buffers;
};

/// Byte ranges touched since the last barrier. Says when the next node must wait for them.
class HazardTracker {
 public:
  /// True when `uses` reads what was written, or writes what was read or written, since the last
  /// clear().
  bool conflicts(const std::vector<ResolvedUse>& uses) const;
  void note(const std::vector<ResolvedUse>& uses);
  void clear() { ranges_.clear(); }

 private:
  struct Range {
    VkBuffer buffer;
    uint64_t begin, end;
    bool write;
  };
  std::vector<Range> ranges_;
};

class Recording;

/// Timestamps around some nodes of a slice. Few of them: a driver may take as long for one as for a
/// small dispatch (lavapipe: 70 us), and slices of which every node was timed took four times as
/// long as others.
struct NodeTimes {
  static constexpr uint32_t kMostNodes = 8;
  static constexpr uint32_t kQueries = 2 * kMostNodes + 2;  // and around the slice
  struct Place {
    Recording* recording;
    size_t node;
    uint32_t begin, end;  // queries
  };
  VkQueryPool pool = VK_NULL_HANDLE;
  uint64_t turn = 0;  // of nodes that are known well, those are timed whose turn it is
  uint32_t queries = 0;
  std::vector<Place> places;

  /// Records the next query. Returns its number.
  uint32_t write(const DeviceFunctions& vk, VkCommandBuffer commands);
};

class Recording {
 public:
  /// Makes pipelines and descriptor sets, and records every layer.
  Recording(Device& device, std::vector<ResolvedNode> nodes);
  ~Recording();
  Recording(const Recording&) = delete;

  /// Replays everything `times` times, in as few submissions as stay below
  /// DeviceOptions::submission_ms each by estimate. `submissions`: how many were made.
  Ticket submit(size_t* submissions, uint32_t times);
  /// Records nodes [first, last) into a command buffer. times: where some of them are timed.
  void record(VkCommandBuffer commands, size_t first, size_t last, NodeTimes* times = nullptr);
  /// How long a node takes: estimated, until it was measured.
  double node_us(size_t node) const { return times_[node].us; }
  void note_time(size_t node, double us);
  /// Reads the timestamps of the last replay, when it has finished: they correct the estimates, and
  /// go to the device's profiler. A layer that takes longer than a submission may is recorded
  /// again as several command buffers.
  void collect_times();

  size_t command_buffer_count() const { return command_buffers_.size(); }
  double estimated_ms() const;
  double last_ms() const { return last_ms_; }
  size_t barrier_count() const { return barriers_; }

 private:
  /// Complete, so that the destructor gives back what the public constructor has made when it
  /// throws.
  explicit Recording(Device& device) : device_(device) {}
  struct CommandBuffer {  // of nodes [first, last)
    size_t first, last;
    VkCommandBuffer commands;
    double estimated_ms;
    bool measured = false;
  };
  struct NodeTime {
    double us;
    uint32_t runs = 0;
  };
  static constexpr uint32_t kTimedRuns = 3;
  void make_descriptors();
  void write_descriptors(size_t node);
  /// A view of 16-byte texels, which lives as long as this.
  VkBufferView texels_of(const BufferView& view);
  void plan_command_buffers();
  void record_command_buffers();
  /// profile: two timestamps for each node go there, from the query `first_query` on; null: none.
  void record_nodes(VkCommandBuffer commands, size_t first, size_t last, VkQueryPool profile,
                    uint32_t first_query, NodeTimes* times = nullptr);
  bool is_timed(size_t node, const NodeTimes& times) const;
  double estimate_ms(const Node& node) const;

  Device& device_;
  std::vector<ResolvedNode> nodes_;
  std::vector<NodeTime> times_;  // of nodes that run in slices
  std::vector<const struct Pipeline*> pipelines_;
  std::vector<VkDescriptorSet> sets_;
  VkDescriptorPool descriptor_pool_ = VK_NULL_HANDLE;
  std::vector<VkBufferView> texel_views_;
  VkQueryPool queries_ = VK_NULL_HANDLE;  // 2 per node when profiling, then 2 per command buffer
  std::vector<CommandBuffer> command_buffers_;
  size_t barriers_ = 0;
  Ticket last_ticket_ = 0;
  bool times_pending_ = false;
  double last_ms_ = 0;
  /// Bound for plan_command_buffers(); shrinks when one turns out slower.
  double longest_buffer_ms_ = 0;
};

}  // namespace mulciber
