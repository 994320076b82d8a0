#include "runtime/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/choices.h"
#include "runtime/pipeline.h"
#include "runtime/profiler.h"
#include "runtime/recorder.h"

namespace mulciber {
namespace {

constexpr uint64_t kArenaAlignment = 256;
constexpr int32_t kForever = std::numeric_limits<int32_t>::max();

}  // namespace

ProgramBuilder::ProgramBuilder(Device& device, std::string name)
    : capabilities_(device.capabilities()),
      device_(&device),
      name_(std::move(name)),
      layer_names_{name_} {}

ProgramBuilder::ProgramBuilder(const Capabilities& capabilities, std::string name)
    : capabilities_(capabilities), name_(std::move(name)), layer_names_{name_} {}

Tensor ProgramBuilder::activation(Shape shape, DataType type) {
  Tensor tensor;
  tensor.shape = shape;
  tensor.type = type;
  tensor.arena_id = static_cast<int32_t>(planned_.size());
  if (tensor.bytes() == 0)
    throw ShapeError(path(), "an activation of shape " + shape.to_string() + " is empty", "");
  planned_.push_back({.bytes = tensor.bytes()});
  return tensor;
}

void ProgramBuilder::keep(const Tensor& tensor) {
  if (tensor.arena_id >= 0) planned_[tensor.arena_id].last_use = kForever;
}

void ProgramBuilder::keep_from_start(const Tensor& tensor) {
  if (tensor.arena_id >= 0) planned_[tensor.arena_id].first_use = 0;
}

ProgramBuilder::Scope::~Scope() {
  if (!builder_) return;
  if (builder_->path_is_layer_.back()) builder_->layer_names_.push_back(builder_->name_);
  builder_->path_.pop_back();
  builder_->path_is_layer_.pop_back();
}

ProgramBuilder::Scope ProgramBuilder::scope(std::string name) {
  path_.push_back(std::move(name));
  path_is_layer_.push_back(false);
  return Scope(this);
}

ProgramBuilder::Scope ProgramBuilder::layer(std::string name) {
  path_.push_back(std::move(name));
  path_is_layer_.push_back(true);
  layer_names_.push_back(path());
  return Scope(this);
}

std::string ProgramBuilder::path() const { return fmt::format("{}", fmt::join(path_, ".")); }

const Kernel& ProgramBuilder::select(const Problem& problem) {
  problems_.push_back(problem);
  if (capabilities().asked) capabilities().asked->note(problem);
  if (auto forced = forced_.find(problem.op); forced != forced_.end()) {
    std::string reason = why_not(*forced->second, capabilities(), problem);
    if (!reason.empty()) throw KernelError(forced->second->id, reason, "");
    return *forced->second;
  }
  return require_kernel(capabilities(), problem);
}

void ProgramBuilder::force(const Kernel& kernel) { forced_[kernel.op] = &kernel; }

void ProgramBuilder::select_as(uint64_t rows, uint64_t all) {
  rows_ = rows;
  all_rows_ = all;
}

uint64_t ProgramBuilder::rows_as(uint64_t rows) const {
  return rows_ > 0 && rows % rows_ == 0 ? rows / rows_ * all_rows_ : rows;
}

uint64_t ProgramBuilder::rows_per_binding(uint64_t bytes_per_row) const {
  const uint64_t limit = capabilities().max_storage_range;
  // The number of rows after which an offset is aligned again.
  const uint64_t step = kArenaAlignment / std::gcd(bytes_per_row, kArenaAlignment);
  const uint64_t rows = limit / bytes_per_row / step * step;
  if (rows == 0) {
    throw ShapeError(path(),
                     fmt::format("{} rows of {} bytes pass the device's storage range of {} bytes",
                                 step, bytes_per_row, limit),
                     "use a device with a larger range");
  }
  return rows;
}

uint64_t ProgramBuilder::flops_per_node() const {
  if (!device_) return std::numeric_limits<uint64_t>::max();
  return static_cast<uint64_t>(device_->pace().flops_per_s * device_->options().submission_ms *
                               1e-3);
}

void ProgramBuilder::add(Node node) {
  node.label = path();
  if (node.label.empty()) node.label = name_;
  node.layer = static_cast<uint32_t>(layer_names_.size() - 1);
  const Reflection& reflection = node.kernel->reflection;
  const uint64_t addresses = reflection.buffer_address ? 8ull * reflection.buffer_count : 0;
  // These three checks fail where C++ and GLSL disagree, which is our mistake and not the user's.
  if (node.buffers.size() != reflection.buffer_count) {
    throw KernelError(node.kernel->id,
                      fmt::format("{} gives {} buffers, the shader has {}", node.label,
                                  node.buffers.size(), reflection.buffer_count),
                      "");
  }
  if (node.params.size() + addresses != reflection.push_constant_bytes) {
    throw KernelError(node.kernel->id,
                      fmt::format("{} gives {} bytes of parameters, the shader has {}", node.label,
                                  node.params.size(), reflection.push_constant_bytes - addresses),
                      "");
  }
  // Counts above the device's limit are no mistake: the recorder spreads such a grid over the
  // workgroups that the device allows.
  if (std::ranges::count(node.groups, 0u) > 0)
    throw KernelError(node.kernel->id, fmt::format("{} dispatches no workgroups", node.label), "");
  const int32_t index = static_cast<int32_t>(nodes_.size());
  for (const BufferUse& use : node.buffers) {
    if (!use.tensor.valid()) throw ShapeError(node.label, "uses a tensor that has no memory", "");
    if (!reflection.buffer_address && use.tensor.bytes() > capabilities().max_storage_range) {
      throw ShapeError(node.label,
                       fmt::format("a {} {} takes {} bytes, the device's storage range is {}",
                                   name_of(use.tensor.type), use.tensor.shape.to_string(),
                                   use.tensor.bytes(), capabilities().max_storage_range),
                       "use a smaller batch or shorter input, or another device");
    }
    if (use.tensor.arena_id < 0) continue;
    PlannedTensor& planned = planned_[use.tensor.arena_id];
    if (planned.first_use < 0) planned.first_use = index;
    planned.last_use = std::max(planned.last_use, index);
  }
  nodes_.push_back(std::move(node));
}

// Owns the parts of a program: the arena, pipelines by node, and one recording.
struct Program::Impl {
  Device& device;
  std::string name;
  std::vector<Node> nodes;
  MemoryPlan plan;
  Buffer own_arena;
  BufferView arena;
  std::unique_ptr<Recording> recording;
  size_t last_submissions = 0;

  explicit Impl(Device& d) : device(d) {}

  BufferView resolve(const Tensor& tensor) const {
    BufferView base = tensor.arena_id >= 0 ? arena : tensor.view;
    uint64_t offset = tensor.byte_offset;
    if (tensor.arena_id >= 0) offset += plan.tensors[tensor.arena_id].offset;
    base.offset += offset;
    base.size = tensor.bytes();
    if (base.address) base.address += offset;
    if (base.mapped) base.mapped += offset;
    return base;
  }
};

MemoryPlan ProgramBuilder::plan() const {
  std::vector<PlannedTensor> tensors = planned_;
  const int32_t last = static_cast<int32_t>(nodes_.size());
  for (PlannedTensor& planned : tensors) {
    if (planned.first_use >= 0 && planned.last_use == kForever) planned.last_use = last;
    // An input that the CPU writes and no node reads still has a place in the arena.
    if (planned.first_use == 0 && planned.last_use < 0) planned.last_use = 0;
    if (planned.last_use == kForever) planned.last_use = -1;
    planned.bytes += 2 * guard_;
  }
  MemoryPlan plan = plan_memory(std::move(tensors), kArenaAlignment);
  for (PlannedTensor& planned : plan.tensors) {
    planned.bytes -= 2 * guard_;
    planned.offset += guard_;
  }
  return plan;
}

Program ProgramBuilder::build(const BufferView& arena) {
  if (!device_)
    throw DeviceError(DeviceError::Kind::kUnavailable, name_,
                      "was planned for a device that is not here");
  auto impl = std::make_unique<Program::Impl>(*device_);
  impl->name = name_;
  impl->plan = plan();
  impl->nodes = std::move(nodes_);
  impl->arena = arena;
  if (!arena.buffer && impl->plan.arena_bytes > 0) {
    impl->own_arena = device_->memory().allocate(impl->plan.arena_bytes, MemoryUsage::kActivations);
    impl->arena = impl->own_arena.view();
  } else if (arena.buffer && impl->plan.arena_bytes > arena.size) {
    throw ShapeError(name_,
                     fmt::format("needs an arena of {} bytes and is given {}",
                                 impl->plan.arena_bytes, arena.size),
                     "");
  }
  std::vector<ResolvedNode> resolved;
  for (const Node& node : impl->nodes) {
    ResolvedNode r;
    r.node = &node;
    for (const BufferUse& use : node.buffers)
      r.buffers.push_back({impl->resolve(use.tensor), use.access});
    resolved.push_back(std::move(r));
  }
  std::vector<std::string> labels;
  if (device_->options().debug_labels) {
    for (const std::string& layer : layer_names_)
      labels.push_back(layer == name_ ? name_ : name_ + ": " + layer);
  }
  impl->recording = std::make_unique<Recording>(*device_, std::move(resolved), std::move(labels));
  nodes_.clear();
  planned_.clear();
  return Program(std::move(impl));
}

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Ticket Program::submit(uint32_t times) {
  return impl_->recording->submit(&impl_->last_submissions, times);
}
void Program::run() {
  try {
    impl_->device.wait(submit());
  } catch (const DeviceError& error) {
    if (error.kind() != DeviceError::Kind::kLost) throw;
    throw DeviceError(error.kind(), error.where(),
                      error.problem() + ", with `" + impl_->name + "` in flight", error.remedy());
  }
  impl_->recording->collect_times();
}
void Program::record(VkCommandBuffer commands) {
  impl_->recording->record(commands, 0, impl_->nodes.size());
}
Recording& Program::recording() { return *impl_->recording; }
BufferView Program::view(const Tensor& tensor) const { return impl_->resolve(tensor); }
BufferView Program::arena() const { return impl_->arena; }
const std::string& Program::name() const { return impl_->name; }
const std::vector<Node>& Program::nodes() const { return impl_->nodes; }
const MemoryPlan& Program::plan() const { return impl_->plan; }
size_t Program::layer_count() const { return impl_->recording->command_buffer_count(); }
size_t Program::last_submission_count() const { return impl_->last_submissions; }
double Program::last_ms() const { return impl_->recording->last_ms(); }
double Program::estimated_ms() const { return impl_->recording->estimated_ms(); }

Work Program::work() const {
  Work total;
  for (const Node& node : impl_->nodes) {
    total.bytes += node.work.bytes;
    total.flops += node.work.flops;
  }
  return total;
}

}  // namespace mulciber
