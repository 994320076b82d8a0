// Cases and reference of attention_combine; conformance/op_cases.cpp declares the cases.
#include "ops/attention_combine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

/// Every `unseen`-th part saw no key, with maximum and total to match; 0: none, 1: all of them.
OpCase attention_combine_case(uint64_t lines, uint64_t parts, uint64_t columns, KernelTypes types,
                              uint64_t unseen = 0, double spread = 1, bool sinks = false) {
  OpCase c;
  c.types = types;
  c.name = fmt::format("l{}_p{}_c{}", lines, parts, columns);
  if (unseen != 0) c.name += fmt::format(".unseen_{}", unseen);
  if (spread != 1) c.name += fmt::format(".spread_{}", name_part(spread));
  if (sinks) c.name += ".sinks";
  c.degenerate = unseen == 1;
  c.must_pass = columns == 64 && unseen != 0;
  const uint64_t floats = columns + 4;
  CaseInput found = normal_input({lines, parts, floats}, types.activation);
  found.fill = [=, normal = found.fill](std::vector<double>& values, std::mt19937& random) {
    normal(values, random);
    for (uint64_t part = 0; part < lines * parts; ++part) {
      double* own = &values[part * floats];
      const bool empty = unseen != 0 && part % unseen == 0;
      if (empty) std::fill_n(own, columns, 0.0);
      own[columns] = empty ? -1e30 : spread * own[columns];
      own[columns + 3] = sinks ? 2 : 0;
      own[columns + 1] = empty ? 0.0 : 1 + std::fabs(own[columns + 1]);
    }
  };
  c.inputs = {found};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    const Tensor result = builder.activation({lines, columns}, types.weight);
    attention_combine(builder, inputs[0], result);
    return std::vector<Tensor>{result};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor y{{lines, columns}, types.weight, {}, {}};
    for (uint64_t line = 0; line < lines; ++line) {
      const double* own = &inputs[0].values[line * parts * floats];
      double maximum = own[columns];
      for (uint64_t i = 0; i < parts; ++i) maximum = std::max(maximum, own[i * floats + columns]);
      std::vector<Bounded> factors;
      Bounded total;
      for (uint64_t i = 0; i < parts; ++i) {
        factors.push_back(exp(Bounded(own[i * floats + columns]) - Bounded(maximum)));
        total = total + Bounded(own[i * floats + columns + 1]) * factors[i];
      }
      if (sinks && total.value > 0)
        total = total + Bounded(2) * exp(Bounded(own[columns + 2]) - Bounded(maximum));
      for (uint64_t column = 0; column < columns; ++column) {
        Bounded sum;
        for (uint64_t i = 0; i < parts; ++i)
          sum = sum + Bounded(own[i * floats + column]) * factors[i];
        append(y, total.value > 0 ? sum / total : Bounded(0));
      }
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

class AttentionCombineCases : public OpCases {
 public:
  std::string shape_format() const override { return "LINES,PARTS,COLUMNS"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override { return {{1024, 8, 128}}; }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 3 || std::ranges::count(shape, 0) != 0 || shape[2] % 4 != 0) {
      throw ShapeError("attention_combine", "a shape is three positive numbers, the last in fours",
                       "give LINES,PARTS,COLUMNS such as 1024,8,128");
    }
    return attention_combine_case(shape[0], shape[1], shape[2], types);
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    return {attention_combine_case(1, 2, 4, types),
            attention_combine_case(37, 3, 64, types),
            attention_combine_case(130, 16, 20, types),
            attention_combine_case(9, 5, 256, types),
            attention_combine_case(21, 4, 64, types, 3, 1, true),
            attention_combine_case(3, 2, 8, types, 1),
            attention_combine_case(11, 6, 32, types, 0, 40)};
  }
};

}  // namespace

const OpCases& attention_combine_cases() {
  static const AttentionCombineCases cases;
  return cases;
}

}  // namespace mulciber::conformance
