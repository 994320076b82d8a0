#include "conformance/vectors/recurrent_entry.h"

#include <fmt/format.h>

#include "conformance/bounds.h"
#include "mulciber/error.h"

namespace mulciber::conformance {

Expected& Expected::add(const Recorded& recorded, size_t first, size_t count) {
  const double bound = share_ * recorded.largest();
  for (size_t i = 0; i < (count ? count : recorded.values.size()); ++i) {
    const double value = recorded.values.at(first + i);
    tensor_.values.push_back(value);
    tensor_.bounds.push_back(bound + (recorded.narrow ? ulp32(value) : 0));
  }
  return *this;
}

CellPart RecurrentEntry::cell_part(const std::string& prefix, const std::string& suffix,
                                   uint64_t columns) {
  const std::string weight = prefix + "weight_ih" + suffix;
  const uint64_t rows = recorded_rows(file, name + "/" + weight);
  for (CellKind kind : {CellKind::kTanh, CellKind::kGru, CellKind::kLstm}) {
    if (rows != gates_of(kind) * units) continue;
    return {kind, linear(weight, rows, columns, prefix + "bias_ih" + suffix),
            linear(prefix + "weight_hh" + suffix, rows, units, prefix + "bias_hh" + suffix)};
  }
  throw ModelError(file.path().string(),
                   fmt::format("tensor `{}/{}` has {} rows: not 1, 3 or 4 gates of {} units",
                               printable(name), weight, rows, units),
                   "the two files belong together");
}

void RecurrentEntry::expect_states(std::vector<CpuTensor>& expected, CellKind kind, uint64_t layers,
                                   uint64_t batch, const std::string& prefix) const {
  const std::vector<uint64_t> shape = {2 * layers, batch, units};
  const Recorded hidden = tensor(prefix + "h_n", shape);
  const bool cells = states_of(kind) == 2;
  const Recorded cell = cells ? tensor(prefix + "c_n", shape) : Recorded{};
  const size_t count = batch * units;
  for (size_t i = 0; i < 2 * layers; ++i) {
    Expected state({states_of(kind), batch, units}, weights);
    state.add(hidden, i * count, count);
    if (cells) state.add(cell, i * count, count);
    expected.push_back(state.tensor());
  }
}

OpCase RecurrentEntry::finish(std::function<std::vector<Tensor>(ProgramBuilder&, Inputs)> build,
                              std::vector<CpuTensor> expected) const {
  OpCase c;
  c.name = "vectors." + name + (weights == DataType::kF16 ? ".f16" : "");
  c.types = {DataType::kF32, weights};
  c.degenerate = true;  // zeros past the end of a row
  c.inputs = inputs;
  c.build = std::move(build);
  c.reference = [expected = std::move(expected)](std::span<const CpuTensor>, const Arithmetic&) {
    return expected;
  };
  return c;
}

}  // namespace mulciber::conformance
