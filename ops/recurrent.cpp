#include "ops/recurrent.h"

#include <fmt/format.h>

#include "mulciber/error.h"
#include "runtime/op.h"
#include "shaders/recurrent.h"

namespace mulciber {
namespace {

// A slice of 64 rows begins aligned for every number of columns.
constexpr uint64_t kRowStep = 64;

[[noreturn]] void refuse_cell(const ProgramBuilder& builder, std::string problem,
                              std::string remedy) {
  throw ShapeError(builder.path() + ": recurrent_cell", std::move(problem), std::move(remedy));
}

}  // namespace

const char* name_of(CellKind kind) {
  switch (kind) {
    case CellKind::kTanh: return "tanh";
    case CellKind::kGru: return "gru";
    case CellKind::kLstm: return "lstm";
  }
  return "?";
}

uint32_t gates_of(CellKind kind) {
  return kind == CellKind::kLstm ? 4 : kind == CellKind::kGru ? 3 : 1;
}

uint32_t states_of(CellKind kind) { return kind == CellKind::kLstm ? 2 : 1; }

GatePreactivations gate_preactivations(ProgramBuilder& builder, CellKind kind, uint64_t rows,
                                       uint64_t length, uint64_t hidden) {
  if (rows == 0 || length == 0 || hidden == 0)
    refuse_cell(builder, fmt::format("{} rows of {} positions, {} units", rows, length, hidden),
                "none may be 0");
  const Tensor all =
      builder.activation({rows_before_inputs(rows) + rows * length, gates_of(kind) * hidden});
  if (all.bytes() > builder.capabilities().max_storage_range) {
    refuse_cell(builder,
                fmt::format("gates of {} rows of {} positions take {} bytes, the device binds {}",
                            rows, length, all.bytes(), builder.capabilities().max_storage_range),
                "use fewer rows or shorter ones");
  }
  return gate_preactivations_in(all, rows);
}

uint64_t rows_before_inputs(uint64_t rows) { return (rows + kRowStep - 1) / kRowStep * kRowStep; }

GatePreactivations gate_preactivations_in(const Tensor& tensor, uint64_t rows) {
  const uint64_t before = rows_before_inputs(rows);
  return {tensor, tensor.row_slice(0, rows),
          tensor.row_slice(before, tensor.shape.rows() - before)};
}

void recurrent_cell(ProgramBuilder& builder, const GatePreactivations& gates, const Tensor& state,
                    const Tensor& outputs, const RecurrentStep& step) {
  const uint64_t rows = gates.recurrent.shape.rows();
  const uint64_t hidden = gates.recurrent.shape.columns() / gates_of(step.kind);
  if (state.type != DataType::kF32 || outputs.type != DataType::kF32)
    refuse_cell(builder, "state and outputs must be f32", "");
  if (state.shape != Shape{states_of(step.kind), rows, hidden}) {
    refuse_cell(builder, fmt::format("the state is {}", state.shape.to_string()),
                fmt::format("a {} of {} rows and {} units needs ({}, {}, {})", name_of(step.kind),
                            rows, hidden, states_of(step.kind), rows, hidden));
  }
  if (outputs.shape.rank() != 3 || outputs.shape[0] != rows ||
      outputs.shape[1] * rows != gates.inputs.shape.rows() ||
      step.first_column + hidden > outputs.shape[2]) {
    refuse_cell(builder,
                fmt::format("outputs are {}, the gates of the inputs have {} rows",
                            outputs.shape.to_string(), gates.inputs.shape.rows()),
                fmt::format("they must be ({}, length, columns), with {} columns from {}", rows,
                            hidden, step.first_column));
  }
  if (step.time >= outputs.shape[1])
    refuse_cell(builder, fmt::format("step {} of {} positions", step.time, outputs.shape[1]),
                "count from 0");
  if (step.control && !fits(step.lengths, rows, *step.control)) {
    refuse_cell(
        builder,
        fmt::format("{} lengths, {} at word {}, do not stand in the {} words of control", rows,
                    step.lengths.count, step.lengths.word, step.control->shape.elements()),
        "make the control tensor longer");
  }
  const Kernel& kernel =
      builder.select({Op::kRecurrentCell, {DataType::kF32, DataType::kF32}, kAnyShape});
  const uint32_t local = local_size(kernel, builder.capabilities());

  Node node;
  node.kernel = &kernel;
  // Every binding needs a buffer; without control nothing reads the fourth one.
  node.buffers = {{gates.tensor, Access::kRead},
                  {state, Access::kReadWrite},
                  {outputs, Access::kWrite},
                  {step.control ? *step.control : gates.tensor, Access::kRead}};
  const uint64_t before = gates.tensor.shape.rows() - gates.inputs.shape.rows();
  node.set_params(shader::RecurrentParams{
      .hidden = static_cast<uint32_t>(hidden),
      .positions = static_cast<uint32_t>(outputs.shape[1]),
      .time = step.time,
      .inputs_first = static_cast<uint32_t>(before * gates.tensor.shape.columns()),
      .cell_first = static_cast<uint32_t>(rows * hidden),
      .columns = static_cast<uint32_t>(outputs.shape[2]),
      .first_column = step.first_column,
      .lengths = step.control ? static_cast<int32_t>(step.lengths.word) : -1});
  node.constants = {{RECURRENT_CELL, static_cast<uint32_t>(step.kind)},
                    {RECURRENT_REVERSE, step.reverse ? 1u : 0u}};
  node.groups = {static_cast<uint32_t>((hidden + local - 1) / local), static_cast<uint32_t>(rows),
                 1};
  node.work.bytes =
      rows * hidden * (2 * gates_of(step.kind) + 2 * states_of(step.kind) + 1) * sizeof(float);
  node.work.flops = rows * hidden * 10 * gates_of(step.kind);
  builder.add(std::move(node));
}

}  // namespace mulciber
