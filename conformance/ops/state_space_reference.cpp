#include "conformance/ops/state_space_reference.h"

#include <algorithm>

#include <fmt/format.h>

#include "mulciber/error.h"

namespace mulciber::conformance {

uint32_t position_of(const StateSpaceVariant& v, uint64_t row) {
  return v.unequal && row % 3 == 1 ? 0 : static_cast<uint32_t>(7 + row);
}

uint32_t count_of(const StateSpaceVariant& v, uint64_t row) {
  return static_cast<uint32_t>(v.unequal ? v.length - std::min(v.length, row) : v.length);
}

StateSpacePlaces::StateSpacePlaces(const StateSpaceVariant& v) {
  // The parts of a tensor at offset 0 tell where they begin.
  const Tensor all = {.shape = {state_space_elements(v.sizes, v.rows, v.length)}};
  const StateSpaceWork work = state_space_work_in(all, v.sizes, v.rows, v.length);
  convolved = work.convolved.byte_offset / sizeof(float);
  steps = work.steps.byte_offset / sizeof(float);
  pairs = work.pairs.byte_offset / sizeof(float);
}

StateSpaceOutputs::StateSpaceOutputs(std::span<const CpuTensor> inputs)
    : work(inputs[0]), state(inputs[2]) {
  work.bounds.assign(work.values.size(), 0);
  state.bounds.assign(state.values.size(), 0);
}

OpCase state_space_case(const StateSpaceVariant& v, StateSpaceOp op, CaseInput weights) {
  OpCase c;
  c.name = fmt::format("r{}_l{}_c{}_n{}_t{}", v.rows, v.length, v.sizes.channels, v.sizes.states,
                       v.sizes.taps);
  if (v.unequal) c.name += ".unequal";
  if (v.deviation != 1) c.name += "." + name_part(v.deviation);
  c.must_pass = v.unequal;
  c.degenerate = v.deviation > 1;  // gates and time steps that saturate
  std::vector<uint32_t> positions, counts;
  for (uint64_t row = 0; row < v.rows; ++row) {
    positions.push_back(position_of(v, row));
    counts.push_back(count_of(v, row));
  }
  ControlWords control(3, 0xffffffff);
  const ControlArray<uint32_t> at_positions = control.append(positions),
                               at_counts = control.append(counts);
  c.inputs = {
      normal_input({state_space_elements(v.sizes, v.rows, v.length)}, DataType::kF32, v.deviation),
      std::move(weights), normal_input({v.rows, 1, v.sizes.state_columns()}, DataType::kF32),
      words_input(control.words())};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    const StateSpaceWork work = state_space_work_in(inputs[0], v.sizes, v.rows, v.length);
    op(builder, v.sizes, work, inputs[1],
       {.tensor = inputs[2], .control = inputs[3], .positions = at_positions, .counts = at_counts});
    return std::vector<Tensor>{inputs[0], inputs[2]};
  };
  return c;
}

std::vector<StateSpaceVariant> state_space_variants() {
  std::vector<StateSpaceVariant> variants;
  for (const uint32_t channels : {1u, 63u, 65u, 130u})
    variants.push_back({2, 3, {.channels = channels, .states = 16, .taps = 4}});
  variants.push_back({4, 5, {.channels = 70, .states = 16, .taps = 4}, true});
  variants.push_back({5, 3, {.channels = 12, .states = 3, .taps = 2}, true});
  variants.push_back({2, 1, {.channels = 96, .states = 8, .taps = 4}, true});
  variants.push_back({1, 1, {.channels = 64, .states = 1, .taps = 1}});
  variants.push_back({1, 9, {.channels = 5, .states = kMostScanStates, .taps = kMostTaps}});
  variants.push_back({1, 131, {.channels = 20, .states = 16, .taps = 4}});
  for (const double deviation : {0.01, 1e3})
    variants.push_back({2, 4, {.channels = 33, .states = 16, .taps = 4}, false, deviation});
  return variants;
}

StateSpaceVariant state_space_variant(const char* op, std::span<const uint64_t> shape) {
  if (shape.size() != 3 || std::ranges::count(shape, uint64_t{0}) > 0)
    throw ShapeError(op, "a shape is three positive numbers",
                     "give rows,length,channels such as 1,32,1536");
  return {
      shape[0], shape[1], {.channels = static_cast<uint32_t>(shape[2]), .states = 16, .taps = 4}};
}

}  // namespace mulciber::conformance
