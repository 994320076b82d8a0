// Cases and reference of permute_columns; conformance/op_cases.cpp declares the cases.
#include "ops/permute_columns.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "conformance/op_case.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

OpCase permute_columns_case(uint64_t rows, uint64_t columns, KernelTypes types) {
  OpCase c;
  c.name = fmt::format("r{}_c{}", rows, columns);
  c.types = types;
  c.exact = true;
  c.must_pass = columns == 65;
  c.long_list_alone = !c.must_pass;
  CaseInput order{{columns}, DataType::kU32, nullptr};
  order.fill = [](std::vector<double>& words, std::mt19937& random) {
    std::iota(words.begin(), words.end(), 0.0);
    std::shuffle(words.begin(), words.end(), random);
  };
  c.inputs = {normal_input({rows, columns}, types.activation), order};
  c.build = [](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    return std::vector<Tensor>{permute_columns(builder, inputs[0], inputs[1])};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor y = inputs[0];
    y.bounds.assign(y.values.size(), 0);
    for (uint64_t i = 0; i < y.values.size(); ++i) {
      const uint64_t column = i % columns;
      y.values[i] = inputs[0].values[i - column + static_cast<uint64_t>(inputs[1].values[column])];
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

class PermuteCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,columns"; }
  bool exact(KernelTypes) const override { return true; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{512, 4096}, {1, 4096}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
      throw ShapeError("permute_columns", "a shape is two positive numbers",
                       "give rows,columns such as 512,4096");
    }
    return permute_columns_case(shape[0], shape[1], types);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (const uint64_t columns : {1, 2, 64, 65, 1000, 4096})
      for (const uint64_t rows : {1, 7})
        cases.push_back(permute_columns_case(rows, columns, types));
    return cases;
  }
};

}  // namespace

const OpCases& permute_columns_cases() {
  static const PermuteCases cases;
  return cases;
}

}  // namespace mulciber::conformance
