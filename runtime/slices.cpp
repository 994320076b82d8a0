#include "runtime/slices.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr uint32_t kMostUpdateBytes = 65536;  // limit of vkCmdUpdateBuffer

constexpr VkAccessFlags kTransferAccess =
    VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr BarrierScope kTransfers = {VK_PIPELINE_STAGE_TRANSFER_BIT, kTransferAccess};
// Writes of kernels and transfers.
constexpr BarrierScope kWritten = {
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
    VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
// Any use after a slice.
constexpr BarrierScope kAfterwards = {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                          VK_PIPELINE_STAGE_TRANSFER_BIT |
                                          VK_PIPELINE_STAGE_HOST_BIT,
                                      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                          kTransferAccess | VK_ACCESS_HOST_READ_BIT};

void copy_all(const DeviceFunctions& vk, VkCommandBuffer commands,
              const std::vector<BufferCopy>& copies) {
  for (const BufferCopy& copy : copies) {
    const VkBufferCopy region = {copy.from.offset, copy.to.offset, copy.from.size};
    vk.vkCmdCopyBuffer(commands, copy.from.buffer, copy.to.buffer, 1, &region);
  }
}

bool is_lost(const Device& device) {
  try {
    device.require_alive();
    return false;
  } catch (const DeviceError&) {
    return true;
  }
}

/// What slices use that may still run when their task is gone.
class SlicesLeft {
 public:
  SlicesLeft(const Device& device, std::shared_ptr<const void> used,
             std::unique_ptr<StageSource> source, std::vector<VkQueryPool> pools)
      : device_(device),
        used_(std::move(used)),
        source_(std::move(source)),
        pools_(std::move(pools)) {}
  ~SlicesLeft() {
    for (const VkQueryPool pool : pools_)
      device_.vk().vkDestroyQueryPool(device_.handle(), pool, device_.callbacks());
  }
  SlicesLeft(const SlicesLeft&) = delete;

 private:
  const Device& device_;
  std::shared_ptr<const void> used_;
  std::unique_ptr<StageSource> source_;
  std::vector<VkQueryPool> pools_;
};

}  // namespace

SliceBorders slice_borders() { return {kWritten, kAfterwards}; }

Stage::Stage() {
  constexpr size_t kUpdates = 8, kCopies = 4;
  updates.reserve(kUpdates);
  inputs.reserve(kCopies);
  copies.reserve(kCopies);
}

void Stage::update(const BufferView& to, std::span<const uint32_t> values) {
  updates.push_back({to, words.size(), values.size()});
  words.insert(words.end(), values.begin(), values.end());
}

void Stage::clear() {
  updates.clear();
  words.clear();
  inputs.clear();
  program = nullptr;
  copies.clear();
}

template <typename Call>
auto SlicedRun::naming_slices(Call&& call) const {
  try {
    return call();
  } catch (const DeviceError& error) {
    if (error.kind() != DeviceError::Kind::kLost || recorded_.empty()) throw;
    const Recorded &first = recorded_.front(), &last = recorded_.back();
    std::string flight = fmt::format(", with slice {} in flight", first.number);
    if (last.number != first.number)
      flight = fmt::format(", with slices {} to {} in flight", first.number, last.number);
    if (first.first && last.last)
      flight += fmt::format(", from `{}` to `{}`", first.first->label, last.last->label);
    throw DeviceError(error.kind(), error.where(), error.problem() + flight, error.remedy());
  }
}

SlicedRun::SlicedRun(Device& device, std::unique_ptr<StageSource> source,
                     std::shared_ptr<const void> used)
    : SlicedRun(device) {
  used_ = std::move(used);
  source_ = std::move(source);
  stages_.resize(kUsualStages);
  recorded_.reserve(kUsualSlices);
  const DeviceFunctions& vk = device.vk();
  for (size_t i = 0; i < kInFlight; ++i) commands_.push_back(device.allocate_command_buffer());
  if (device.capabilities().timestamp_period <= 0) return;
  for (size_t i = 0; i < kTimed; ++i) {
    VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = NodeTimes::kQueries;
    VkQueryPool pool = VK_NULL_HANDLE;
    device.check(vk.vkCreateQueryPool(device.handle(), &info, device.callbacks(), &pool),
                 "vkCreateQueryPool");
    pools_.push_back(pool);
  }
  free_pools_ = pools_;
}

SlicedRun::~SlicedRun() {
  const bool may_run = recorded_.size() > in_flight_.size() && !is_lost(device_);
  try {
    if (!in_flight_.empty()) device_.wait(in_flight_.back().ticket);
  } catch (const DeviceError&) {
    // A lost device runs nothing any more.
  }
  device_.free_command_buffers(commands_);
  auto left = std::make_shared<SlicesLeft>(device_, std::move(used_), std::move(source_),
                                           std::move(pools_));
  // Command buffers of the application may run later than this, and nobody says when they end.
  if (may_run) device_.keep(std::move(left));
}

const Stage* SlicedRun::current_stage() {
  const uint64_t index = position_.stage - stages_ended_;
  if (index == stages_given_) {
    if (stages_given_ == stages_.size()) stages_.emplace_back();
    stages_[stages_given_].clear();
    if (!source_->next(stages_[stages_given_])) return nullptr;
    ++stages_given_;
  }
  return &stages_[index];
}

void SlicedRun::record_updates(VkCommandBuffer commands, const Stage& stage) const {
  if (stage.updates.empty() && stage.inputs.empty()) return;
  const DeviceFunctions& vk = device_.vk();
  // Earlier stages may still read the ranges that are written now.
  memory_barrier(vk, commands, kWritten, kTransfers);
  for (const Stage::Update& update : stage.updates) {
    const std::span<const std::byte> bytes =
        std::as_bytes(std::span(stage.words).subspan(update.first, update.count));
    for (uint64_t done = 0; done < bytes.size(); done += kMostUpdateBytes) {
      vk.vkCmdUpdateBuffer(commands, update.to.buffer, update.to.offset + done,
                           std::min<uint64_t>(kMostUpdateBytes, bytes.size() - done),
                           bytes.data() + done);
    }
  }
  copy_all(vk, commands, stage.inputs);
}

void SlicedRun::record_copies(VkCommandBuffer commands, const Stage& stage) const {
  if (stage.copies.empty()) return;
  const DeviceFunctions& vk = device_.vk();
  memory_barrier(vk, commands, kWritten, kTransfers);
  copy_all(vk, commands, stage.copies);
}

Slice SlicedRun::record(VkCommandBuffer commands, double budget_us) {
  if (!in_flight_.empty())
    throw SettingError("FrameTask::record()", "is called while slices of step() are under way",
                       "wait() for them first, or go on with step()");
  return record_slice(commands, budget_us);
}

Slice SlicedRun::record_slice(VkCommandBuffer commands, double budget_us) {
  Slice slice;
  const double stretch = device_.slice_stretch();
  const Position from = position_;
  double estimated_us = 0;  // estimate for the nodes
  NodeTimes times;
  const Node *begun = nullptr, *ended = nullptr;
  bool any = false;
  while (!cancelled_) {
    const Stage* stage = current_stage();
    if (!stage) break;
    if (!position_.begun) {
      // The time of copies and updates is not counted: a stage without nodes is small.
      record_updates(commands, *stage);
      position_.begun = any = true;
    }
    const size_t nodes = stage->program ? stage->program->nodes().size() : 0;
    const size_t first = position_.node;
    while (position_.node < nodes && slice.dispatches < kMostNodes) {
      const double us = stage->program->recording().node_us(position_.node);
      if (slice.dispatches > 0 && stretch * (estimated_us + us) > budget_us) break;
      estimated_us += us;
      ++slice.dispatches;
      ++position_.node;
    }
    if (position_.node > first) {
      any = true;
      if (!begun) begun = &stage->program->nodes()[first];
      ended = &stage->program->nodes()[position_.node - 1];
      if (!times.pool) times = begin_times(commands);
      stage->program->recording().record(commands, first, position_.node,
                                         times.pool ? &times : nullptr);
    }
    if (position_.node < nodes) break;
    record_copies(commands, *stage);
    position_ = {.stage = position_.stage + 1};
  }
  if (!any) return {};
  memory_barrier(device_.vk(), commands, kWritten, kAfterwards);
  if (times.pool) times.write(device_.vk(), commands);
  slice.number = ++slices_;
  slice.estimated_us = stretch * estimated_us;
  recorded_.push_back({slice.number, position_.stage, from, estimated_us, times, begun, ended});
  return slice;
}

void SlicedRun::cancel() { cancelled_ = true; }

void SlicedRun::restart() {
  stages_given_ = 0;
  stages_ended_ = 0;
  position_ = {};
  cancelled_ = false;
}

void SlicedRun::completed(uint64_t number) {
  if (number <= slices_ended_) return;
  if (find_recorded(number) == recorded_.end())
    throw SettingError(fmt::format("slice {}", number),
                       number <= slices_
                           ? "was discarded"
                           : fmt::format("was never recorded: {} is the last", slices_),
                       "report numbers that record() gave, once their command buffers have ended");
  if (in_flight_.empty()) {
    end_slices(number);
  } else {
    collect();  // fences know which slices of step() have ended
  }
}

void SlicedRun::end_slices(uint64_t number) {
  uint64_t stages = 0;
  auto left = recorded_.begin();
  for (; left != recorded_.end() && left->number <= number; ++left) {
    stages = left->stages;
    slices_ended_ = left->number;
    read_times(left->times, left->estimated_us);
  }
  recorded_.erase(recorded_.begin(), left);
  if (stages == 0) return;
  // A stage that has ended is the next to be used again: it has room for words.
  const auto ended = static_cast<std::ptrdiff_t>(stages - stages_ended_);
  std::rotate(stages_.begin(), stages_.begin() + ended,
              stages_.begin() + static_cast<std::ptrdiff_t>(stages_given_));
  stages_given_ -= static_cast<size_t>(ended);
  stages_ended_ = stages;
  source_->ended(stages);
}

std::vector<SlicedRun::Recorded>::iterator SlicedRun::find_recorded(uint64_t number) {
  return std::ranges::find(recorded_, number, &Recorded::number);
}

void SlicedRun::rewind(const std::vector<Recorded>::iterator& first) {
  position_ = first->from;
  for (auto slice = first; slice != recorded_.end(); ++slice) {
    if (slice->times.pool) free_pools_.push_back(slice->times.pool);
  }
  recorded_.erase(first, recorded_.end());
}

void SlicedRun::discard(uint64_t number) {
  const auto slice = find_recorded(number);
  const auto refuse = [&](const char* problem) {
    throw SettingError(fmt::format("slice {}", number), problem,
                       "discard slices that record() gave and nobody will submit");
  };
  if (number == 0 || number > slices_) refuse("was never recorded");
  if (number <= slices_ended_) refuse("is completed, or was discarded before");
  if (slice == recorded_.end()) refuse("was discarded before");
  if (!in_flight_.empty()) refuse("was submitted by step()");
  rewind(slice);
}

SlicedRun::Step SlicedRun::step(double budget_us, const SubmissionSemaphores& semaphores) {
  naming_slices([&] { device_.require_alive(); });
  collect();
  if (done()) return {};
  if (recorded_.size() > in_flight_.size())
    throw SettingError("FrameTask::step()", "is called while slices of record() are under way",
                       "report them to completed() or discard() them first, or go on with "
                       "record()");
  if (in_flight_.size() == kInFlight) return {.waits = true};
  const DeviceFunctions& vk = device_.vk();
  const VkCommandBuffer commands = commands_[slices_ % kInFlight];
  device_.check(vk.vkResetCommandBuffer(commands, 0), "vkResetCommandBuffer");
  VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  device_.check(vk.vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  const double most = std::min(budget_us, 1000 * device_.options().submission_ms);
  Step step = {.slice = record_slice(commands, most)};
  Ticket ticket = 0;
  try {
    device_.check(vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer");
    if (step.slice.number == 0) return {.waits = !in_flight_.empty()};
    ticket = naming_slices([&] { return device_.submit({&commands, 1}, semaphores); });
  } catch (...) {
    // Nothing was submitted: the next step begins here again, with this number. Errors of a lost
    // device name the slice further.
    const auto slice = find_recorded(step.slice.number);
    if (slice != recorded_.end() && !is_lost(device_)) {
      rewind(slice);
      --slices_;
    }
    throw;
  }
  if (device_.timeline()) {
    step.semaphore = device_.timeline();
    step.value = ticket;
  }
  in_flight_.push_back({step.slice.number, ticket});
  return step;
}

NodeTimes SlicedRun::begin_times(VkCommandBuffer commands) {
  if (free_pools_.empty()) return {};
  NodeTimes times = {.pool = free_pools_.back(), .turn = slices_};
  free_pools_.pop_back();
  device_.vk().vkCmdResetQueryPool(commands, times.pool, 0, NodeTimes::kQueries);
  times.write(device_.vk(), commands);
  return times;
}

void SlicedRun::read_times(const NodeTimes& times, double estimated_us) {
  if (!times.pool) return;
  free_pools_.push_back(times.pool);
  std::array<uint64_t, NodeTimes::kQueries> ticks;
  if (device_.vk().vkGetQueryPoolResults(device_.handle(), times.pool, 0, times.queries,
                                         times.queries * sizeof(uint64_t), ticks.data(),
                                         sizeof(uint64_t), VK_QUERY_RESULT_64_BIT) != VK_SUCCESS) {
    return;
  }
  const Capabilities& c = device_.capabilities();
  const uint64_t mask = c.timestamp_bits >= 64 ? ~0ull : (1ull << c.timestamp_bits) - 1;
  const auto us_between = [&](uint32_t begin, uint32_t end) {
    return static_cast<double>((ticks[end] - ticks[begin]) & mask) * c.timestamp_period * 1e-3;
  };
  for (const NodeTimes::Place& place : std::span(times.places).first(times.timed))
    place.recording->note_time(place.node, us_between(place.begin, place.end));
  constexpr double kMostStretch = 8;
  const double took = us_between(0, times.queries - 1) / estimated_us;
  std::atomic<double>& stretch = device_.slice_stretch();
  stretch = stretch + (std::clamp(took, 1.0, kMostStretch) - stretch) / 8;
}

void SlicedRun::collect() {
  const auto first_has_ended = [&] { return device_.finished(in_flight_.front().ticket); };
  while (!in_flight_.empty() && naming_slices(first_has_ended)) {
    const uint64_t ended = in_flight_.front().number;
    in_flight_.pop_front();
    end_slices(ended);
  }
}

void SlicedRun::wait() { wait(UINT64_MAX); }

bool SlicedRun::wait(uint64_t timeout_ns) {
  if (in_flight_.empty()) return true;
  naming_slices([&] { return device_.wait(in_flight_.back().ticket, timeout_ns); });
  collect();
  return in_flight_.empty();
}

}  // namespace mulciber
