// Cases and reference of recurrent_cell; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/recurrent.h"

namespace mulciber::conformance {
namespace {

constexpr uint64_t kRecurrentSpare = 5;  // columns of the outputs on both sides

struct RecurrentVariant {
  CellKind kind = CellKind::kLstm;
  uint64_t rows = 1, length = 1, hidden = 1;
  uint32_t time = 0;
  bool reverse = false, unequal = false;
  double deviation = 1;
};

/// Positions of a row: the first row has all, the next ones fewer and fewer, down to none.
uint64_t recurrent_length(const RecurrentVariant& v, uint64_t row) {
  return v.unequal ? v.length - std::min(v.length, row) : v.length;
}

/// Computed like on a device: where e^80 limits the exponential, the rest is negligible.
Bounded recurrent_sigmoid(Bounded x) {
  return Bounded(1) / (Bounded(1) + exp(Bounded(std::min(-x.value, 80.0), x.error)));
}

OpCase recurrent_cell_case(const RecurrentVariant& v) {
  OpCase c;
  c.name = fmt::format("{}.r{}_l{}_h{}.at{}", name_of(v.kind), v.rows, v.length, v.hidden, v.time);
  if (v.reverse) c.name += ".reverse";
  if (v.unequal) c.name += ".unequal";
  if (v.deviation != 1) c.name += "." + name_part(v.deviation);
  c.must_pass = v.hidden >= 64 || v.unequal;
  // Large numbers saturate the gates on purpose.
  c.degenerate = v.deviation > 1;
  const uint64_t gates = gates_of(v.kind), states = states_of(v.kind);
  const uint64_t columns = v.hidden + 2 * kRecurrentSpare;
  std::vector<uint32_t> counts;
  for (uint64_t row = 0; row < v.rows; ++row)
    counts.push_back(static_cast<uint32_t>(recurrent_length(v, row)));
  ControlWords control(3, 0xffffffff);
  const ControlArray<uint32_t> lengths = control.append(counts);
  const uint64_t before = rows_before_inputs(v.rows);
  c.inputs = {
      normal_input({before + v.rows * v.length, gates * v.hidden}, DataType::kF32, v.deviation),
      normal_input({states, v.rows, v.hidden}, DataType::kF32),
      normal_input({v.rows, v.length, columns}, DataType::kF32), words_input(control.words())};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    RecurrentStep step{
        .kind = v.kind, .time = v.time, .reverse = v.reverse, .first_column = kRecurrentSpare};
    if (v.unequal) {
      step.control = inputs[3];
      step.lengths = lengths;
    }
    recurrent_cell(builder, gate_preactivations_in(inputs[0], v.rows), inputs[1], inputs[2], step);
    return std::vector<Tensor>{inputs[1], inputs[2]};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor state = inputs[1], outputs = inputs[2];
    state.bounds.assign(state.values.size(), 0);
    outputs.bounds.assign(outputs.values.size(), 0);
    for (uint64_t row = 0; row < v.rows; ++row) {
      const uint64_t count = recurrent_length(v, row);
      const bool padding = v.time >= count;
      const uint64_t position = padding ? v.time : v.reverse ? count - 1 - v.time : v.time;
      for (uint64_t unit = 0; unit < v.hidden; ++unit) {
        const uint64_t output = (row * v.length + position) * columns + kRecurrentSpare + unit;
        const uint64_t hidden_at = row * v.hidden + unit,
                       cell_at = (v.rows + row) * v.hidden + unit;
        if (padding) {
          put(outputs, output, Bounded(0));
          continue;
        }
        const auto from_state = [&](uint64_t gate) {
          return Bounded(inputs[0].values[(row * gates + gate) * v.hidden + unit]);
        };
        const auto from_input = [&](uint64_t gate) {
          return Bounded(
              inputs[0]
                  .values[((before + row * v.length + position) * gates + gate) * v.hidden + unit]);
        };
        const auto both = [&](uint64_t gate) { return from_input(gate) + from_state(gate); };
        Bounded h;
        if (v.kind == CellKind::kLstm) {
          const Bounded cell = recurrent_sigmoid(both(1)) * Bounded(inputs[1].values[cell_at]) +
                               recurrent_sigmoid(both(0)) * tanh(both(2));
          put(state, cell_at, cell);
          h = recurrent_sigmoid(both(3)) * tanh(cell);
        } else if (v.kind == CellKind::kGru) {
          const Bounded z = recurrent_sigmoid(both(1));
          const Bounded n = tanh(from_input(2) + recurrent_sigmoid(both(0)) * from_state(2));
          h = (Bounded(1) - z) * n + z * Bounded(inputs[1].values[hidden_at]);
        } else {
          h = tanh(both(0));
        }
        put(state, hidden_at, h);
        put(outputs, output, h);
      }
    }
    return std::vector<CpuTensor>{state, outputs};
  };
  return c;
}

class RecurrentCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,length,hidden"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 32, 512}, {64, 32, 512}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes) const override {
    if (shape.size() != 3 || shape[0] == 0 || shape[1] == 0 || shape[2] == 0) {
      throw ShapeError("recurrent_cell", "a shape is three positive numbers",
                       "give rows,length,hidden such as 64,32,512");
    }
    return recurrent_cell_case({.rows = shape[0], .length = shape[1], .hidden = shape[2]});
  }
  std::vector<OpCase> samples(KernelTypes) const override {
    std::vector<OpCase> cases;
    for (CellKind kind : {CellKind::kTanh, CellKind::kGru, CellKind::kLstm}) {
      for (uint64_t hidden : {1, 7, 63, 64, 65, 130}) {
        cases.push_back(recurrent_cell_case(
            {.kind = kind, .rows = 2, .length = 3, .hidden = hidden, .time = 1}));
        cases.push_back(recurrent_cell_case({kind, 5, 4, hidden, 2, true, true}));
      }
      for (uint32_t time : {0, 2, 3}) {
        cases.push_back(recurrent_cell_case({kind, 6, 4, 20, time, false, true}));
        cases.push_back(recurrent_cell_case({kind, 6, 4, 20, time, true, true}));
      }
      for (double deviation : {0.01, 1e4}) {
        cases.push_back(recurrent_cell_case(
            {.kind = kind, .rows = 3, .length = 2, .hidden = 33, .deviation = deviation}));
      }
      cases.push_back(
          recurrent_cell_case({.kind = kind, .rows = 80, .length = 2, .hidden = 48, .time = 1}));
    }
    return cases;
  }
};

}  // namespace

const OpCases& recurrent_cell_cases() {
  static const RecurrentCases cases;
  return cases;
}

}  // namespace mulciber::conformance
