// Cases and reference of norm_columns; conformance/op_cases.cpp declares the cases.
#include <fmt/format.h>

#include <vector>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/norm_reference.h"
#include "mulciber/error.h"
#include "ops/norm.h"

namespace mulciber::conformance {
namespace {

struct NormColumnsVariant {
  bool centered = false;
  double deviation = 1;  // deviation of x's values
  double epsilon = 1e-6;
};

struct NormColumnsProblem {
  uint64_t rows, columns;  // shape of x
  uint64_t first, groups, width;
};

/// Subtracts the mean, which is a sum over `row` in any order.
void subtract_mean(std::span<Bounded> row) {
  const auto n = static_cast<double>(row.size());
  double sum = 0, size = 0;
  for (const Bounded& value : row) {
    sum += value.value;
    size += std::fabs(value.value);
  }
  const Bounded mean = Bounded(sum, sum_error(n, size)) / Bounded(n);
  for (Bounded& value : row) value = value - mean;
}

OpCase norm_columns_case(const NormColumnsProblem& problem, KernelTypes types,
                         NormColumnsVariant options) {
  // These are not structured bindings: C++20 lambdas may capture such names, but clang 14 cannot.
  const uint64_t rows = problem.rows, columns = problem.columns, first = problem.first,
                 groups = problem.groups, width = problem.width;
  OpCase c;
  c.types = types;
  c.name = fmt::format("r{}_c{}.from_{}.g{}_w{}", rows, columns, first, groups, width);
  if (options.centered) c.name += ".centered";
  if (options.deviation != 1) c.name += fmt::format(".deviation_{}", name_part(options.deviation));
  if (options.epsilon != 1e-6) c.name += fmt::format(".epsilon_{}", name_part(options.epsilon));
  c.degenerate = options.deviation == 0;
  c.must_pass = options.deviation == 100 || (first > 0 && width == 66) || columns == 50;
  c.inputs = {normal_input({rows, columns}, types.activation, options.deviation),
              normal_input({groups, width}, DataType::kF32)};
  const auto epsilon = static_cast<float>(options.epsilon);
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    norm_columns(builder, inputs[0], first, inputs[1], epsilon, options.centered);
    return std::vector<Tensor>{inputs[0]};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    const std::vector<double>&x = inputs[0].values, &gains = inputs[1].values;
    CpuTensor y{inputs[0].shape, types.activation, {}, {}};
    std::vector<Bounded> group(width);
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t column = 0; column < columns; ++column) {
        if (column < first || column >= first + groups * width) {
          append(y, Bounded(x[row * columns + column]));  // must be unchanged
          continue;
        }
        const uint64_t at = (column - first) % width, gain = column - first;
        if (at == 0) {
          for (uint64_t i = 0; i < width; ++i) group[i] = Bounded(x[row * columns + column + i]);
          if (options.centered) subtract_mean(group);
          rms_norm_reference(group, epsilon);
        }
        append(y, group[at] * Bounded(gains[gain]));
      }
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

class NormColumnsCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,groups,width"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 1, 2048}, {1, 40, 128}, {512, 1, 2048}, {512, 40, 128}};
  }

  // Queries and keys, followed by as many values as keys.
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 3 || shape[0] == 0 || shape[1] == 0 || shape[2] == 0)
      throw ShapeError("norm of columns", "a shape is three positive numbers",
                       "give rows,groups,width such as 512,40,128");
    return norm_columns_case({shape[0], (shape[1] + 1) * shape[2], 0, shape[1], shape[2]}, types,
                             {});
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    const auto add = [&](NormColumnsProblem problem, NormColumnsVariant options = {}) {
      const uint64_t together = problem.columns | problem.first | problem.width;
      if (types.activation == DataType::kF32 || together % 2 == 0)
        cases.push_back(norm_columns_case(problem, types, options));
    };
    for (const bool centered : {false, true}) {
      for (uint64_t width : {1, 2, 3, 4, 6, 12, 31, 32, 64, 66, 128, 256, 1020, 2050}) {
        // A centered group of one element contains only rounding errors.
        if (centered && width == 1) continue;
        add({3, 5 * width, 0, 3, width}, {.centered = centered});
        add({2, 5 * width, 2 * width, 2, width}, {.centered = centered});
      }
      add({7, 50, 3, 2, 20}, {.centered = centered});
      add({7, 100, 6, 3, 26}, {.centered = centered});
      // Above 1 MiB in f32: several nodes where the storage range is that small.
      add({301, 1032, 8, 4, 128}, {.centered = centered});
      add({5, 64, 0, 1, 64}, {.centered = centered, .deviation = 1e-3});
      add({5, 256, 64, 2, 64}, {.centered = centered, .deviation = 100});
      add({5, 96, 0, 2, 36}, {.centered = centered, .epsilon = 1e-2});
      add({6, 96, 24, 2, 24}, {.centered = centered, .deviation = 0});  // only epsilon remains
    }
    return cases;
  }
};

}  // namespace

const OpCases& norm_columns_cases() {
  static const NormColumnsCases cases;
  return cases;
}

}  // namespace mulciber::conformance
