// Cases and reference of split_k_reduce; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <cmath>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/activation_reference.h"
#include "mulciber/error.h"
#include "ops/split_k.h"

namespace mulciber::conformance {
namespace {

struct SplitKReduceVariant {
  Activation activation = Activation::kNone;
  bool bias = false;
  bool accumulate = false;
  uint32_t columns_before = 0;
  bool gated = false;
  bool exact = false;
};

OpCase split_k_reduce_case(uint64_t parts, uint64_t rows, uint64_t columns, KernelTypes types,
                           SplitKReduceVariant options) {
  const uint64_t results = options.gated ? columns / 2 : columns;
  const uint64_t total = options.columns_before + results;
  const bool existing = options.accumulate || total != results;
  const Shape sums = {parts, rows, columns}, result = {rows, total};

  OpCase c;
  c.types = types;
  c.name = fmt::format("p{}_m{}_n{}", parts, rows, columns);
  if (options.activation != Activation::kNone)
    c.name += fmt::format(".{}", name_of(options.activation));
  if (options.bias) c.name += ".bias";
  if (options.accumulate) c.name += ".accumulate";
  if (options.gated) c.name += ".gated";
  if (total != results) c.name += fmt::format(".columns_{}_of_{}", options.columns_before, total);
  if (options.exact) c.name += ".exact";
  c.exact = options.exact;
  if (c.exact) {
    // f16 represents whole numbers up to 2048.
    c.inputs.push_back(whole_input(sums, types.activation, static_cast<int>(1000 / parts)));
    if (options.bias) c.inputs.push_back(whole_input({columns}, DataType::kF32, 500));
    if (existing) c.inputs.push_back(whole_input(result, types.weight, 500));
  } else {
    c.inputs.push_back(normal_input(sums, types.activation, 1 / std::sqrt(double(parts))));
    if (options.bias) c.inputs.push_back(normal_input({columns}, DataType::kF32));
    if (existing) c.inputs.push_back(normal_input(result, types.weight));
  }
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    MatmulOptions given;
    const Tensor target = existing ? inputs.back() : builder.activation(result, types.weight);
    if (options.bias) given.bias = inputs[1];
    if (options.accumulate) given.accumulate_into = target;
    given.activation = options.activation;
    given.gated = options.gated;
    split_k_reduce(builder, inputs[0], target, given, options.columns_before, 0);
    return std::vector<Tensor>{target};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor y{result, types.weight, std::vector<double>(result.elements()),
                std::vector<double>(result.elements())};
    if (existing) y.values = inputs.back().values;
    const double grain = grain_of(inputs[0].values);
    const auto sum_of = [&](uint64_t row, uint64_t column) -> Bounded {
      double value = 0, size = 0;
      for (uint64_t part = 0; part < parts; ++part) {
        const double term = inputs[0].values[(part * rows + row) * columns + column];
        value += term;
        size += std::fabs(term);
      }
      const Bounded sum = sums_exactly(grain, size)
                              ? Bounded(value)
                              : Bounded(value, sum_error(static_cast<double>(parts), size));
      return options.bias ? sum + Bounded(inputs[1].values[column]) : sum;
    };
    for (uint64_t i = 0; i < rows; ++i) {
      for (uint64_t j = 0; j < results; ++j) {
        Bounded value =
            activation_reference(sum_of(i, options.gated ? 2 * j : j), options.activation);
        if (options.gated) value = value * sum_of(i, 2 * j + 1);
        const uint64_t at = i * total + options.columns_before + j;
        if (options.accumulate) value = value + Bounded(y.values[at]);
        put(y, at, value);
      }
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

class SplitKReduceCases : public OpCases {
 public:
  std::string shape_format() const override { return "PARTS,M,N"; }
  bool exact(KernelTypes) const override { return true; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{4, 16, 1024}, {16, 64, 256}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 3 || shape[0] == 0 || shape[1] == 0 || shape[2] == 0) {
      throw ShapeError("split_k_reduce", "a shape is three positive numbers",
                       "give PARTS,M,N such as 4,16,1024");
    }
    return split_k_reduce_case(shape[0], shape[1], shape[2], types, {});
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    const auto add = [&](uint64_t parts, uint64_t rows, uint64_t columns,
                         SplitKReduceVariant options = {}) {
      cases.push_back(split_k_reduce_case(parts, rows, columns, types, options));
    };
    for (uint64_t parts : {2, 3, 16}) {
      add(parts, 1, 1);
      add(parts, 9, 37, {.activation = Activation::kGelu, .bias = true});
      add(parts, 17, 128, {.bias = true, .accumulate = true});
    }
    add(4, 13, 62, {.activation = Activation::kSilu, .bias = true, .gated = true});
    add(2, 10, 38,
        {.activation = Activation::kGeluTanh, .bias = true, .columns_before = 3, .gated = true});
    add(5, 21, 31, {.columns_before = 5});
    add(3, 7, 65, {.bias = true, .accumulate = true, .columns_before = 2, .exact = true});
    add(2, 300, 257);
    return cases;
  }
};

}  // namespace

const OpCases& split_k_reduce_cases() {
  static const SplitKReduceCases cases;
  return cases;
}

}  // namespace mulciber::conformance
