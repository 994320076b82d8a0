#include "runtime/recorder.h"

#include <algorithm>

#include "runtime/debug_labels.h"
#include "runtime/memory_barrier.h"
#include "runtime/occupancy_priority.h"
#include "runtime/pipeline.h"
#include "runtime/profiler.h"

namespace mulciber {
namespace {

void write_time(const DeviceFunctions& vk, VkCommandBuffer commands, VkQueryPool pool,
                uint32_t query) {
  vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, query);
}

}  // namespace

uint32_t NodeTimes::write(const DeviceFunctions& vk, VkCommandBuffer commands) {
  write_time(vk, commands, pool, queries);
  return queries++;
}

PipelineKey pipeline_key(const Node& node, const Capabilities& device) {
  PipelineKey key{node.kernel, {}};
  if (dispatched_groups(node.groups, device) != node.groups) key.grid = node.groups;
  for (const SpecializationConstant& c : node.constants) key.constants.push_back({c.id, c.value});
  std::sort(key.constants.begin(), key.constants.end());
  return key;
}

bool conflict(std::span<const ResolvedUse> a, std::span<const ResolvedUse> b) {
  for (const ResolvedUse& one : a) {
    for (const ResolvedUse& other : b) {
      if (one.view.buffer != other.view.buffer ||
          other.view.offset + other.view.size <= one.view.offset ||
          one.view.offset + one.view.size <= other.view.offset) {
        continue;
      }
      if (one.access != Access::kRead || other.access != Access::kRead) return true;
    }
  }
  return false;
}

Recording::Recording(Device& device, std::vector<ResolvedNode> nodes,
                     std::vector<std::string> layer_names)
    : Recording(device) {
  nodes_ = std::move(nodes);
  layer_names_ = std::move(layer_names);
  longest_buffer_ms_ = device.options().submission_ms;
  std::vector<PipelineKey> keys;
  for (const ResolvedNode& node : nodes_) {
    keys.push_back(pipeline_key(*node.node, device.capabilities()));
    keys.back().order = device.pipelines().order();
  }
  device_.pipelines().prepare(keys);
  for (const PipelineKey& key : keys) pipelines_.push_back(&device_.pipelines().get(key));
  make_descriptors();
  make_push_constants();
  find_conflicts();
  for (const ResolvedNode& node : nodes_) times_.push_back({1000 * estimate_ms(*node.node)});
  plan_command_buffers();
  // An application may never submit this recording by itself.
  if (!device_.adopted()) record_command_buffers();
}

void Recording::make_push_constants() {
  for (const ResolvedNode& node : nodes_) {
    if (node.node->kernel->reflection.buffer_address) {
      for (const ResolvedUse& use : node.buffers) {
        const auto* address = reinterpret_cast<const std::byte*>(&use.view.address);
        push_constants_.insert(push_constants_.end(), address, address + sizeof use.view.address);
      }
    }
    const std::vector<std::byte>& params = node.node->params;
    push_constants_.insert(push_constants_.end(), params.begin(), params.end());
    push_ends_.push_back(push_constants_.size());
  }
}

void Recording::find_conflicts() {
  conflicts_.assign(nodes_.size(), 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    size_t before = i;  // the node usually reads what one of the last few wrote
    while (before > 0 && !conflict(nodes_[i].buffers, nodes_[before - 1].buffers)) --before;
    conflicts_[i] = before;
  }
}

Recording::~Recording() {
  try {
    device_.wait(last_ticket_);
  } catch (const DeviceError&) {
    // free_command_buffers() below waits for a lost device's work in flight.
  }
  std::vector<VkCommandBuffer> buffers;
  for (const CommandBuffer& recorded : command_buffers_) {
    if (recorded.commands) buffers.push_back(recorded.commands);
  }
  device_.free_command_buffers(buffers);
  const DeviceFunctions& vk = device_.vk();
  if (queries_) vk.vkDestroyQueryPool(device_.handle(), queries_, device_.callbacks());
  if (descriptor_pool_)
    vk.vkDestroyDescriptorPool(device_.handle(), descriptor_pool_, device_.callbacks());
  for (VkBufferView view : texel_views_)
    vk.vkDestroyBufferView(device_.handle(), view, device_.callbacks());
}

double Recording::estimate_ms(const Node& node) const {
  const Pace pace = device_.pace();
  return 1000 * (static_cast<double>(node.work.flops) / pace.flops_per_s +
                 static_cast<double>(node.work.bytes) / pace.bytes_per_s + pace.dispatch_s);
}

// A command buffer ends where its layer ends, or where the next node would make it too long for one
// submission.
void Recording::plan_command_buffers() {
  command_buffers_.clear();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    double ms = estimate_ms(*nodes_[i].node);
    bool starts = command_buffers_.empty() || nodes_[i].node->layer != nodes_[i - 1].node->layer ||
                  command_buffers_.back().estimated_ms + ms > longest_buffer_ms_;
    if (starts) command_buffers_.push_back({i, i, VK_NULL_HANDLE, 0});
    command_buffers_.back().last = i + 1;
    command_buffers_.back().estimated_ms += ms;
  }
}

void Recording::record_command_buffers() {
  const DeviceFunctions& vk = device_.vk();
  const bool timestamps = device_.capabilities().timestamp_period > 0;
  if (queries_) vk.vkDestroyQueryPool(device_.handle(), queries_, device_.callbacks());
  queries_ = VK_NULL_HANDLE;
  const uint32_t node_queries = device_.profiler() ? static_cast<uint32_t>(2 * nodes_.size()) : 0;
  if (timestamps && !nodes_.empty()) {
    VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = node_queries + static_cast<uint32_t>(2 * command_buffers_.size());
    device_.check(vk.vkCreateQueryPool(device_.handle(), &info, device_.callbacks(), &queries_),
                  "vkCreateQueryPool");
  }
  barriers_ = 0;
  for (size_t p = 0; p < command_buffers_.size(); ++p) {
    CommandBuffer& recorded = command_buffers_[p];
    recorded.commands = device_.allocate_command_buffer();
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;  // several steps may be in flight
    device_.check(vk.vkBeginCommandBuffer(recorded.commands, &begin), "vkBeginCommandBuffer");
    const uint32_t buffer_query = node_queries + static_cast<uint32_t>(2 * p);
    if (queries_) {
      if (node_queries) {
        vk.vkCmdResetQueryPool(recorded.commands, queries_,
                               static_cast<uint32_t>(2 * recorded.first),
                               static_cast<uint32_t>(2 * (recorded.last - recorded.first)));
      }
      vk.vkCmdResetQueryPool(recorded.commands, queries_, buffer_query, 2);
      vk.vkCmdWriteTimestamp(recorded.commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, queries_,
                             buffer_query);
    }
    record_nodes(recorded.commands, recorded.first, recorded.last,
                 node_queries > 0 ? queries_ : VK_NULL_HANDLE,
                 static_cast<uint32_t>(2 * recorded.first));
    if (queries_) {
      vk.vkCmdWriteTimestamp(recorded.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_,
                             buffer_query + 1);
    }
    if (p + 1 == command_buffers_.size()) {
      memory_barrier(vk, recorded.commands,
                     {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT},
                     {VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT});
    }
    device_.check(vk.vkEndCommandBuffer(recorded.commands), "vkEndCommandBuffer");
    ++device_.counters().command_buffers;
  }
}

bool Recording::is_timed(size_t node, const NodeTimes& times) const {
  constexpr uint64_t kTurns = 32;  // clocks change: well-known nodes are timed again now and then
  return times.timed < NodeTimes::kMostNodes &&
         (times_[node].runs < kTimedRuns || (node + times.turn) % kTurns == 0);
}

void Recording::record_nodes(VkCommandBuffer commands, size_t first, size_t last,
                             VkQueryPool profile, uint32_t first_query, NodeTimes* times) {
  const DeviceFunctions& vk = device_.vk();
  const float occupancy = device_.options().occupancy_priority;
  if (occupancy != kNormalOccupancy) set_occupancy_priority(vk, commands, occupancy);
  auto wait = [&](VkPipelineStageFlags extra_stage, VkAccessFlags extra_access) {
    memory_barrier(vk, commands,
                   {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | extra_stage,
                    VK_ACCESS_SHADER_WRITE_BIT | extra_access},
                   {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT});
    ++barriers_;
  };
  // Earlier work in the queue is unknown here: the other command buffers, the last replay, an
  // upload.
  wait(VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
  size_t last_barrier = first;  // the node behind it
  DebugLabels labels(device_.instance_vk(), commands);
  VkPipeline bound = VK_NULL_HANDLE;
  bool after_timed = false;
  for (size_t i = first; i < last; ++i) {
    const Node& node = *nodes_[i].node;
    const bool begins_layer = i == first || node.layer != nodes_[i - 1].node->layer;
    if (begins_layer && !layer_names_.empty()) labels.begin(layer_names_[node.layer].c_str());
    // The measured time includes the barrier ahead of the node, which takes time too.
    const bool timed = times && is_timed(i, *times);
    if (timed) {
      if (!after_timed) times->write(vk, commands);
      times->places[times->timed++] = {this, i, times->queries - 1, times->queries};
    }
    if (conflicts_[i] > last_barrier) {
      wait(0, 0);
      last_barrier = i;
    }
    const Pipeline& pipeline = *pipelines_[i];
    if (pipeline.pipeline != bound) {
      vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline);
      bound = pipeline.pipeline;
    }
    if (sets_[i]) {
      vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1,
                                 &sets_[i], 0, nullptr);
    }
    const size_t push = i > 0 ? push_ends_[i - 1] : 0;
    if (push_ends_[i] > push) {
      vk.vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            static_cast<uint32_t>(push_ends_[i] - push), &push_constants_[push]);
    }
    const uint32_t query = first_query + static_cast<uint32_t>(2 * (i - first));
    if (profile) write_time(vk, commands, profile, query);
    const std::array<uint32_t, 3> groups = dispatched_groups(node.groups, device_.capabilities());
    vk.vkCmdDispatch(commands, groups[0], groups[1], groups[2]);
    if (profile) write_time(vk, commands, profile, query + 1);
    if (timed) times->write(vk, commands);
    after_timed = timed;
  }
}

void Recording::record(VkCommandBuffer commands, size_t first, size_t last, NodeTimes* times) {
  record_nodes(commands, first, last, VK_NULL_HANDLE, 0, times);
  // The rest of the command buffer belongs to the application.
  if (device_.options().occupancy_priority != kNormalOccupancy)
    set_occupancy_priority(device_.vk(), commands, kNormalOccupancy);
}

void Recording::note_time(size_t node, double us) {
  NodeTime& time = times_[node];
  // The first run may include the driver's compilation: the fastest of the first few runs counts,
  // and later runs correct it slowly.
  if (time.runs == 0) {
    time.us = us;
  } else if (time.runs < kTimedRuns) {
    time.us = std::min(time.us, us);
  } else {
    time.us += (us - time.us) / 8;
  }
  ++time.runs;
}

Ticket Recording::submit(size_t* submissions, uint32_t times) {
  if (device_.profiler()) {  // the next replay would overwrite the timestamps of this one
    for (; times > 1; --times) submit(submissions, 1);
  }
  if (!command_buffers_.empty() && !command_buffers_.front().commands) record_command_buffers();
  if (times_pending_ && device_.finished(last_ticket_)) collect_times();
  const double budget = device_.options().submission_ms;
  std::vector<VkCommandBuffer> batch;
  double batch_ms = 0;
  *submissions = 0;
  auto flush = [&] {
    if (batch.empty()) return;
    last_ticket_ = device_.submit(batch);
    ++*submissions;
    batch.clear();
    batch_ms = 0;
  };
  for (; times > 0; --times) {
    for (const CommandBuffer& recorded : command_buffers_) {
      if (batch_ms + recorded.estimated_ms > budget) flush();
      batch.push_back(recorded.commands);
      batch_ms += recorded.estimated_ms;
    }
  }
  flush();
  times_pending_ = true;
  if (device_.profiler()) {
    device_.wait(last_ticket_);
    collect_times();
  }
  return last_ticket_;
}

void Recording::collect_times() {
  if (!times_pending_ || !queries_ || !device_.finished(last_ticket_)) return;
  times_pending_ = false;
  const DeviceFunctions& vk = device_.vk();
  const uint32_t node_queries = device_.profiler() ? static_cast<uint32_t>(2 * nodes_.size()) : 0;
  std::vector<uint64_t> ticks(node_queries + 2 * command_buffers_.size());
  if (vk.vkGetQueryPoolResults(device_.handle(), queries_, 0, static_cast<uint32_t>(ticks.size()),
                               ticks.size() * 8, ticks.data(), 8,
                               VK_QUERY_RESULT_64_BIT) != VK_SUCCESS) {
    return;
  }
  const Capabilities& c = device_.capabilities();
  const uint64_t mask = c.timestamp_bits >= 64 ? ~0ull : (1ull << c.timestamp_bits) - 1;
  for (uint64_t& tick : ticks) tick &= mask;
  if (device_.profiler()) {
    std::vector<Node> nodes;
    for (const ResolvedNode& node : nodes_) nodes.push_back(*node.node);
    device_.profiler()->add(nodes, 0, {ticks.begin(), ticks.begin() + node_queries},
                            c.timestamp_period);
  }
  bool too_long = false;
  last_ms_ = 0;
  for (size_t p = 0; p < command_buffers_.size(); ++p) {
    uint64_t elapsed = (ticks[node_queries + 2 * p + 1] - ticks[node_queries + 2 * p]) & mask;
    double ms = static_cast<double>(elapsed) * c.timestamp_period * 1e-6;
    last_ms_ += ms;
    CommandBuffer& recorded = command_buffers_[p];
    Work work;
    for (size_t i = recorded.first; i < recorded.last; ++i) {
      work.bytes += nodes_[i].node->work.bytes;
      work.flops += nodes_[i].node->work.flops;
    }
    // The first replay of a command buffer may include the driver's compilation: the faster of two
    // counts.
    recorded.estimated_ms = recorded.measured ? std::min(recorded.estimated_ms, ms) : ms;
    if (recorded.measured) {
      device_.observe(work.flops, work.bytes, recorded.estimated_ms * 1e-3);
      if (recorded.estimated_ms > device_.options().submission_ms &&
          recorded.last - recorded.first > 1)
        too_long = true;
    }
    recorded.measured = true;
  }
  if (too_long) {
    std::vector<VkCommandBuffer> buffers;
    for (const CommandBuffer& recorded : command_buffers_) buffers.push_back(recorded.commands);
    longest_buffer_ms_ /= 2;
    plan_command_buffers();
    record_command_buffers();
    device_.free_command_buffers(buffers);
  }
}

double Recording::estimated_ms() const {
  double total = 0;
  for (const CommandBuffer& recorded : command_buffers_) total += recorded.estimated_ms;
  return total;
}

}  // namespace mulciber
