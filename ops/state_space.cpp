#include "ops/state_space.h"

#include <fmt/format.h>

#include "mulciber/error.h"
#include "runtime/op.h"
#include "shaders/state_space.h"

namespace mulciber {
namespace {

// Alignment in floats: parts of the work and rows of the state begin at multiples of 256 bytes.
constexpr uint64_t kStep = 64;
constexpr uint64_t steps_of(uint64_t elements) { return (elements + kStep - 1) / kStep; }

[[noreturn]] void refuse_scan(const ProgramBuilder& builder, const char* op, std::string problem,
                              std::string remedy) {
  throw ShapeError(fmt::format("{}: {}", builder.path(), op), std::move(problem),
                   std::move(remedy));
}

void check(const ProgramBuilder& builder, const char* op, const StateSpaceSizes& sizes,
           const StateSpaceWork& work, const Tensor& weights, uint64_t columns,
           const SequenceStates& states) {
  const uint64_t rows = work.convolved.shape[0];
  if (sizes.channels == 0 || sizes.states == 0 || sizes.states > kMostScanStates ||
      sizes.taps == 0 || sizes.taps > kMostTaps)
    refuse_scan(
        builder, op,
        fmt::format("{} channels of {} states and {} taps", sizes.channels, sizes.states,
                    sizes.taps),
        fmt::format("a channel has 1 to {} states and 1 to {} taps", kMostScanStates, kMostTaps));
  if (weights.type != DataType::kF32 || weights.shape.elements() != sizes.channels * columns)
    refuse_scan(builder, op, fmt::format("the weights are {}", weights.shape.to_string()),
                fmt::format("give {} f32", sizes.channels * columns));
  const Shape wanted = {rows, 1, sizes.state_columns()};
  if (states.tensor.type != DataType::kF32 || states.tensor.shape != wanted)
    refuse_scan(builder, op, fmt::format("the state is {}", states.tensor.shape.to_string()),
                fmt::format("it must be {} f32", wanted.to_string()));
  if (!fits(states.positions, rows, states.control) || !fits(states.counts, rows, states.control))
    refuse_scan(builder, op,
                fmt::format("positions and counts of {} rows do not stand in control", rows),
                "make the control tensor longer");
}

/// Makes the node of either op: both have the same buffers, parameters and grid.
Node node_of(ProgramBuilder& builder, Op op, const StateSpaceSizes& sizes,
             const StateSpaceWork& work, const Tensor& weights, const SequenceStates& states) {
  const uint64_t rows = work.convolved.shape[0], length = work.convolved.shape[1];
  const auto first = [&](const Tensor& part) {
    return static_cast<uint32_t>((part.byte_offset - work.tensor.byte_offset) / sizeof(float));
  };
  Node node;
  node.kernel = &builder.select({op, {DataType::kF32, DataType::kF32}, kAnyShape});
  node.buffers = {{work.tensor, Access::kReadWrite},
                  {weights, Access::kRead},
                  {states.tensor, Access::kReadWrite},
                  {states.control, Access::kRead}};
  node.set_params(
      shader::StateSpaceParams{.channels = sizes.channels,
                               .tokens = static_cast<uint32_t>(length),
                               .convolved = first(work.convolved),
                               .steps = first(work.steps),
                               .pairs = first(work.pairs),
                               .state_columns = static_cast<uint32_t>(sizes.state_columns()),
                               .scanned = (sizes.taps - 1) * sizes.channels,
                               .positions = states.positions.word,
                               .counts = states.counts.word});
  const uint32_t local = local_size(*node.kernel, builder.capabilities());
  node.groups = {(sizes.channels + local - 1) / local, static_cast<uint32_t>(rows), 1};
  return node;
}

}  // namespace

uint64_t StateSpaceSizes::state_columns() const {
  return steps_of((uint64_t{taps} - 1 + states) * channels) * kStep;
}

uint64_t state_space_elements(const StateSpaceSizes& sizes, uint64_t rows, uint64_t length) {
  const uint64_t tokens = rows * length, channels = sizes.channels;
  return (steps_of(tokens * 2 * channels) + 2 * steps_of(tokens * channels) +
          steps_of(tokens * 2 * sizes.states)) *
         kStep;
}

StateSpaceWork state_space_work_in(const Tensor& tensor, const StateSpaceSizes& sizes,
                                   uint64_t rows, uint64_t length) {
  const Tensor in_steps = tensor.reshaped({tensor.shape.elements() / kStep, kStep});
  uint64_t begin = 0;
  const auto part = [&](uint64_t columns) {
    const uint64_t steps = steps_of(rows * length * columns);
    Tensor found = in_steps.row_slice(begin, steps);
    found.shape = {rows, length, columns};
    begin += steps;
    return found;
  };
  const uint64_t channels = sizes.channels;
  StateSpaceWork work = {.tensor = tensor,
                         .projected = part(2 * channels),
                         .convolved = part(channels),
                         .steps = part(channels),
                         .pairs = part(uint64_t{2} * sizes.states)};
  return work;
}

StateSpaceWork state_space_work(ProgramBuilder& builder, const StateSpaceSizes& sizes,
                                uint64_t rows, uint64_t length) {
  const Tensor all = builder.activation({state_space_elements(sizes, rows, length)});
  const uint64_t most = builder.capabilities().max_storage_range;
  if (all.bytes() > most)
    refuse_scan(builder, "state_space",
                fmt::format("{} rows of {} tokens take {} bytes, the device binds {}", rows, length,
                            all.bytes(), most),
                "use fewer rows or shorter ones");
  return state_space_work_in(all, sizes, rows, length);
}

void causal_convolution(ProgramBuilder& builder, const StateSpaceSizes& sizes,
                        const StateSpaceWork& work, const Tensor& weights,
                        const SequenceStates& states) {
  check(builder, "causal_convolution", sizes, work, weights, sizes.taps + 1, states);
  Node node = node_of(builder, Op::kCausalConvolution, sizes, work, weights, states);
  node.constants = {{STATE_SPACE_TAPS, sizes.taps}};
  const uint64_t results = work.convolved.shape.elements(), rows = work.convolved.shape[0];
  node.work.bytes = 2 * results * sizeof(float) + weights.bytes() +
                    2 * rows * (sizes.taps - 1) * sizes.channels * sizeof(float);
  node.work.flops = results * (2 * sizes.taps + 4);
  builder.add(std::move(node));
}

void selective_scan(ProgramBuilder& builder, const StateSpaceSizes& sizes,
                    const StateSpaceWork& work, const Tensor& weights,
                    const SequenceStates& states) {
  check(builder, "selective_scan", sizes, work, weights, sizes.states + 1, states);
  Node node = node_of(builder, Op::kSelectiveScan, sizes, work, weights, states);
  node.constants = {{STATE_SPACE_STATES, sizes.states}};
  const uint64_t results = work.convolved.shape.elements(), rows = work.convolved.shape[0];
  node.work.bytes = 4 * results * sizeof(float) + work.pairs.bytes() + weights.bytes() +
                    2 * rows * sizes.states * sizes.channels * sizeof(float);
  node.work.flops = results * (7 * sizes.states + 30);
  builder.add(std::move(node));
}

}  // namespace mulciber
