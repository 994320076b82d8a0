#include "runtime/slices.h"

#include <algorithm>

#include "runtime/memory_barrier.h"
#include "runtime/recorder.h"

namespace mulciber {
namespace {

constexpr uint32_t kMostUpdateBytes = 65536;  // of vkCmdUpdateBuffer
// Times are measured again now and then: clocks change.
constexpr uint64_t kSlicesBetweenTimes = 16;

constexpr VkAccessFlags kTransferAccess =
    VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr BarrierScope kTransfers = {VK_PIPELINE_STAGE_TRANSFER_BIT, kTransferAccess};
// What kernels and transfers wrote.
constexpr BarrierScope kWritten = {
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
    VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
// Whatever may come after a slice.
constexpr BarrierScope kAfterwards = {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                          VK_PIPELINE_STAGE_TRANSFER_BIT |
                                          VK_PIPELINE_STAGE_HOST_BIT,
                                      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                          kTransferAccess | VK_ACCESS_HOST_READ_BIT};

}  // namespace

SlicedRun::SlicedRun(Device& device, std::unique_ptr<StageSource> source) : SlicedRun(device) {
  source_ = std::move(source);
  const DeviceFunctions& vk = device.vk();
  for (size_t i = 0; i < kInFlight; ++i) {
    Slot& slot = slots_.emplace_back();
    slot.commands = device.allocate_command_buffer();
    if (device.capabilities().timestamp_period <= 0) continue;
    VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = 2 * kMostNodes;
    device.check(vk.vkCreateQueryPool(device.handle(), &info, nullptr, &slot.queries),
                 "vkCreateQueryPool");
  }
}

SlicedRun::~SlicedRun() {
  try {
    if (!in_flight_.empty()) device_.wait(in_flight_.back().ticket);
  } catch (const DeviceError&) {
    // A lost device runs nothing any more.
  }
  const DeviceFunctions& vk = device_.vk();
  for (const Slot& slot : slots_) {
    if (slot.commands) device_.free_command_buffers({&slot.commands, 1});
    if (slot.queries) vk.vkDestroyQueryPool(device_.handle(), slot.queries, nullptr);
  }
}

void SlicedRun::record_updates(VkCommandBuffer commands) const {
  if (stage_->updates.empty()) return;
  const DeviceFunctions& vk = device_.vk();
  // Earlier stages may still read what is written now.
  memory_barrier(vk, commands, kWritten, kTransfers);
  for (const BufferUpdate& update : stage_->updates) {
    const uint64_t bytes = update.words.size() * sizeof(uint32_t);
    for (uint64_t done = 0; done < bytes; done += kMostUpdateBytes) {
      vk.vkCmdUpdateBuffer(commands, update.to.buffer, update.to.offset + done,
                           std::min<uint64_t>(kMostUpdateBytes, bytes - done),
                           reinterpret_cast<const std::byte*>(update.words.data()) + done);
    }
  }
}

void SlicedRun::record_copies(VkCommandBuffer commands) const {
  if (stage_->copies.empty()) return;
  const DeviceFunctions& vk = device_.vk();
  memory_barrier(vk, commands, kWritten, kTransfers);
  for (const BufferCopy& copy : stage_->copies) {
    const VkBufferCopy region = {copy.from.offset, copy.to.offset, copy.from.size};
    vk.vkCmdCopyBuffer(commands, copy.from.buffer, copy.to.buffer, 1, &region);
  }
}

Slice SlicedRun::record(VkCommandBuffer commands, double budget_us) {
  return record(commands, budget_us, nullptr);
}

Slice SlicedRun::record(VkCommandBuffer commands, double budget_us, SliceTimes* times) {
  Slice slice;
  bool any = false;
  while (!cancelled_) {
    if (!stage_) {
      // What copies and updates take is not counted: a stage that is nothing else is small.
      stage_ = source_->next();
      if (!stage_) break;
      node_ = 0;
      record_updates(commands);
      any = true;
    }
    const size_t nodes = stage_->program ? stage_->program->nodes().size() : 0;
    const size_t first = node_;
    while (node_ < nodes && slice.dispatches < kMostNodes) {
      const double us = stage_->program->recording().node_us(node_);
      if (slice.dispatches > 0 && slice.estimated_us + us > budget_us) break;
      slice.estimated_us += us;
      ++slice.dispatches;
      if (times) times->nodes.push_back({stage_->program, node_});
      ++node_;
    }
    if (node_ > first) {
      any = true;
      const auto query =
          times ? static_cast<uint32_t>(2 * (times->nodes.size() - (node_ - first))) : 0u;
      stage_->program->recording().record(commands, first, node_,
                                          times ? times->pool : VK_NULL_HANDLE, query);
    }
    if (node_ < nodes) break;
    record_copies(commands);
    stage_.reset();
    ++stages_recorded_;
  }
  if (!any) return {};
  memory_barrier(device_.vk(), commands, kWritten, kAfterwards);
  slice.number = ++slices_;
  recorded_.push_back({slice.number, stages_recorded_});
  return slice;
}

void SlicedRun::cancel() {
  cancelled_ = true;
  stage_.reset();
}

void SlicedRun::completed(uint64_t number) {
  uint64_t stages = 0;
  for (; !recorded_.empty() && recorded_.front().number <= number; recorded_.pop_front())
    stages = recorded_.front().stages;
  if (stages > 0) source_->ended(stages);
}

SlicedRun::Step SlicedRun::step(double budget_us, const SubmissionSemaphores& semaphores) {
  collect();
  if (done()) return {};
  if (in_flight_.size() == kInFlight) return {.waits = true};
  const DeviceFunctions& vk = device_.vk();
  const Slot& slot = slots_[slices_ % kInFlight];
  device_.check(vk.vkResetCommandBuffer(slot.commands, 0), "vkResetCommandBuffer");
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  device_.check(vk.vkBeginCommandBuffer(slot.commands, &begin), "vkBeginCommandBuffer");
  SliceTimes times;
  const bool measures = slot.queries && ++untimed_slices_ % kSlicesBetweenTimes <= 4;
  if (measures) {
    times.pool = slot.queries;
    vk.vkCmdResetQueryPool(slot.commands, slot.queries, 0, 2 * kMostNodes);
  }
  const double most = std::min(budget_us, 1000 * device_.options().submission_ms);
  Step step = {.slice = record(slot.commands, most, measures ? &times : nullptr)};
  device_.check(vk.vkEndCommandBuffer(slot.commands), "vkEndCommandBuffer");
  if (step.slice.number == 0) return {.waits = !in_flight_.empty()};
  const Ticket ticket = device_.submit({&slot.commands, 1}, semaphores);
  if (device_.timeline()) {
    step.semaphore = device_.timeline();
    step.value = ticket;
  }
  in_flight_.push_back({step.slice.number, ticket, std::move(times)});
  return step;
}

void SlicedRun::read_times(const SliceTimes& times) {
  const Capabilities& c = device_.capabilities();
  const uint64_t mask = c.timestamp_bits >= 64 ? ~0ull : (1ull << c.timestamp_bits) - 1;
  std::vector<uint64_t> ticks(2 * times.nodes.size());
  if (ticks.empty() ||
      device_.vk().vkGetQueryPoolResults(device_.handle(), times.pool, 0,
                                         static_cast<uint32_t>(ticks.size()), ticks.size() * 8,
                                         ticks.data(), 8, VK_QUERY_RESULT_64_BIT) != VK_SUCCESS) {
    return;
  }
  for (size_t i = 0; i < times.nodes.size(); ++i) {
    const uint64_t elapsed = ((ticks[2 * i + 1] & mask) - (ticks[2 * i] & mask)) & mask;
    times.nodes[i].program->recording().note_time(
        times.nodes[i].node, static_cast<double>(elapsed) * c.timestamp_period * 1e-3);
  }
}

void SlicedRun::collect() {
  while (!in_flight_.empty() && device_.finished(in_flight_.front().ticket)) {
    const InFlight ended = std::move(in_flight_.front());
    in_flight_.pop_front();
    if (ended.times.pool) read_times(ended.times);
    completed(ended.number);
  }
}

void SlicedRun::wait() {
  if (in_flight_.empty()) return;
  device_.wait(in_flight_.back().ticket);
  collect();
}

}  // namespace mulciber
