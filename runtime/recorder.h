// Command buffers of a program: barriers from byte ranges, one buffer per layer, replayed in
// submissions bounded by time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
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

/// A node whose tensors have their final memory.
struct ResolvedNode {
  const Node* node = nullptr;
  std::vector<ResolvedUse> buffers;
};

/// Whether a barrier must stand between two nodes: they use bytes in common, which one of them
/// writes.
bool conflict(std::span<const ResolvedUse> a, std::span<const ResolvedUse> b);

/// Byte ranges that were touched since the last barrier. Says when the next node needs a barrier.
class HazardTracker {
 public:
  /// True when `uses` reads a range that was written, or writes one that was written or read, since
  /// the last clear().
  bool conflicts(const std::vector<ResolvedUse>& uses) const { return conflict(uses, noted_); }
  void note(const std::vector<ResolvedUse>& uses) {
    noted_.insert(noted_.end(), uses.begin(), uses.end());
  }
  void clear() { noted_.clear(); }

 private:
  std::vector<ResolvedUse> noted_;
};

class Recording;

/// Timestamps around some nodes of a slice. They are few because a driver may take as long for one
/// as for a small dispatch (lavapipe: 70 us): slices that timed every node took four times as long.
struct NodeTimes {
  static constexpr uint32_t kMostNodes = 8;
  static constexpr uint32_t kQueries = 2 * kMostNodes + 2;  // two more around the slice
  struct Place {
    Recording* recording;
    size_t node;
    uint32_t begin, end;  // query numbers
  };
  VkQueryPool pool = VK_NULL_HANDLE;
  uint64_t turn = 0;  // counter by which one in 32 of the often-timed nodes is timed again
  uint32_t queries = 0, timed = 0;  // queries and places so far
  std::array<Place, kMostNodes> places = {};

  /// Records the next query and returns its number.
  uint32_t write(const DeviceFunctions& vk, VkCommandBuffer commands);
};

class Recording {
 public:
  /// Makes pipelines and descriptor sets, and records every layer unless the device is adopted.
  /// layer_names: names for debug labels, by Node::layer; empty: none are recorded.
  Recording(Device& device, std::vector<ResolvedNode> nodes,
            std::vector<std::string> layer_names = {});
  ~Recording();
  Recording(const Recording&) = delete;

  /// Replays everything `times` times, in the fewest submissions that each stay below
  /// DeviceOptions::submission_ms by estimate. `submissions`: receives their number.
  Ticket submit(size_t* submissions, uint32_t times);
  /// Records nodes [first, last) into a command buffer. times: receives the timestamps of some of
  /// them; may be null.
  void record(VkCommandBuffer commands, size_t first, size_t last, NodeTimes* times = nullptr);
  /// Microseconds that a node takes: an estimate until the node was measured.
  double node_us(size_t node) const { return times_[node].us; }
  void note_time(size_t node, double us);
  /// Reads the timestamps of the last finished replay. They correct the estimates and go to the
  /// device's profiler. A layer that takes longer than a submission may take is recorded again as
  /// several command buffers.
  void collect_times();

  size_t command_buffer_count() const { return command_buffers_.size(); }
  double estimated_ms() const;
  double last_ms() const { return last_ms_; }
  size_t barrier_count() const { return barriers_; }

 private:
  /// This constructor completes the object, so that the destructor frees what the public
  /// constructor made before it throws.
  explicit Recording(Device& device) : device_(device) {}
  struct CommandBuffer {  // nodes [first, last)
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
  /// Collects the push constants of all nodes: addresses of buffers, then parameters.
  void make_push_constants();
  void find_conflicts();
  /// A view of 16-byte texels, which lives as long as the recording.
  VkBufferView texels_of(const BufferView& view);
  void plan_command_buffers();
  void record_command_buffers();
  /// profile: receives two timestamps for each node, from query `first_query` on; null: none.
  void record_nodes(VkCommandBuffer commands, size_t first, size_t last, VkQueryPool profile,
                    uint32_t first_query, NodeTimes* times = nullptr);
  bool is_timed(size_t node, const NodeTimes& times) const;
  double estimate_ms(const Node& node) const;

  Device& device_;
  std::vector<ResolvedNode> nodes_;
  std::vector<std::string> layer_names_;
  std::vector<NodeTime> times_;  // measured times of nodes in slices
  std::vector<const struct Pipeline*> pipelines_;
  std::vector<VkDescriptorSet> sets_;
  std::vector<std::byte> push_constants_;
  std::vector<size_t> push_ends_;  // of each node in push_constants_
  /// For each node, one more than the last node before it with which it conflicts; 0: none.
  std::vector<size_t> conflicts_;
  VkDescriptorPool descriptor_pool_ = VK_NULL_HANDLE;
  std::vector<VkBufferView> texel_views_;
  VkQueryPool queries_ = VK_NULL_HANDLE;  // when profiling 2 per node, then 2 per command buffer
  std::vector<CommandBuffer> command_buffers_;
  size_t barriers_ = 0;
  Ticket last_ticket_ = 0;
  bool times_pending_ = false;
  double last_ms_ = 0;
  /// Bound for plan_command_buffers(); shrinks when a command buffer turns out slower.
  double longest_buffer_ms_ = 0;
};

}  // namespace mulciber
