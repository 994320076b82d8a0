#include "layers/recurrent.h"

#include <fmt/format.h>

#include "ops/elementwise.h"

namespace mulciber {
namespace {

/// The hidden vectors, the first ones of a state. state: (states, rows, H).
Tensor hidden_of(const Tensor& state) {
  return state.reshaped({state.shape[0] * state.shape[1], state.shape[2]})
      .row_slice(0, state.shape[1]);
}

/// A cell that runs over the sequence in one direction.
struct Direction {
  const RecurrentCell& cell;
  GatePreactivations gates;
  Tensor state;
  uint32_t first_column;
  bool reverse;
};

Direction begin(ProgramBuilder& builder, const RecurrentCell& cell, const Tensor& x,
                uint32_t first_column, bool reverse) {
  const auto scope = builder.scope(reverse ? "backward" : "forward");
  const uint64_t rows = x.shape[0], length = x.shape[1];
  Direction direction{cell, gate_preactivations(builder, cell.kind, rows, length, cell.units()),
                      fill(builder, {states_of(cell.kind), rows, cell.units()}, 0), first_column,
                      reverse};
  // One product serves the inputs of all positions: only the product of the state must wait for the
  // previous step.
  cell.input.write_to(builder, x.reshaped({rows * length, x.shape[2]}), direction.gates.inputs);
  return direction;
}

void step(ProgramBuilder& builder, const Direction& direction, const Tensor& outputs, uint32_t time,
          const std::optional<RowLengths>& lengths) {
  const auto scope = builder.scope(direction.reverse ? "backward" : "forward");
  direction.cell.hidden.write_to(builder, hidden_of(direction.state), direction.gates.recurrent);
  RecurrentStep options{.kind = direction.cell.kind,
                        .time = time,
                        .reverse = direction.reverse,
                        .first_column = direction.first_column};
  if (lengths) {
    options.control = lengths->control;
    options.lengths = lengths->lengths;
  }
  recurrent_cell(builder, direction.gates, direction.state, outputs, options);
}

}  // namespace

void RecurrentCell::step(ProgramBuilder& builder, const Tensor& x, const Tensor& state,
                         const Tensor& outputs, uint32_t first_column) const {
  const uint64_t rows = state.shape[1];
  const GatePreactivations gates = gate_preactivations(builder, kind, rows, 1, units());
  input.write_to(builder, x.reshaped({rows, x.shape.columns()}), gates.inputs);
  hidden.write_to(builder, hidden_of(state), gates.recurrent);
  recurrent_cell(builder, gates, state, outputs, {.kind = kind, .first_column = first_column});
}

RecurrentLayer::Result RecurrentLayer::operator()(ProgramBuilder& builder, const Tensor& x,
                                                  const std::optional<RowLengths>& lengths) const {
  const uint64_t units = forward.units();
  std::vector<Direction> directions = {begin(builder, forward, x, 0, false)};
  if (backward)
    directions.push_back(begin(builder, *backward, x, static_cast<uint32_t>(units), true));

  const uint64_t columns = units + (backward ? backward->units() : 0);
  const Tensor outputs = builder.activation({x.shape[0], x.shape[1], columns});
  for (uint32_t time = 0; time < x.shape[1]; ++time) {
    for (const Direction& direction : directions) step(builder, direction, outputs, time, lengths);
  }
  Result result{outputs, directions[0].state, std::nullopt};
  if (backward) result.backward_state = directions[1].state;
  return result;
}

std::vector<RecurrentLayer::Result> RecurrentStack::operator()(
    ProgramBuilder& builder, const Tensor& x, const std::optional<RowLengths>& lengths) const {
  std::vector<RecurrentLayer::Result> results;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto scope = builder.layer(fmt::format("layers.{}", i));
    results.push_back(layers[i](builder, i == 0 ? x : results.back().outputs, lengths));
  }
  return results;
}

}  // namespace mulciber
