// Cases and reference of copy_columns; conformance/op_cases.cpp declares the cases.
#include <algorithm>

#include <fmt/format.h>

#include "conformance/op_case.h"
#include "mulciber/error.h"
#include "ops/copy.h"

namespace mulciber::conformance {
namespace {

struct CopyVariant {
  uint64_t rows = 1, columns = 1, x_rows = 1;
  uint32_t x_first = 0, x_spare = 0, y_first = 0, y_spare = 0;
  uint32_t blocks = 1, x_step = 0, y_step = 0;
};

OpCase copy_columns_case(const CopyVariant& v, KernelTypes types) {
  OpCase c;
  c.name = fmt::format("r{}_c{}", v.rows, v.columns);
  if (v.x_first + v.x_spare > 0) c.name += fmt::format("_from{}_{}", v.x_first, v.x_spare);
  if (v.y_first + v.y_spare > 0) c.name += fmt::format("_to{}_{}", v.y_first, v.y_spare);
  if (v.x_rows != v.rows) c.name += ".one_for_all";
  if (v.blocks > 1) c.name += fmt::format(".blocks_{}_{}_{}", v.blocks, v.x_step, v.y_step);
  c.types = types;
  c.exact = true;
  c.must_pass = v.columns < 100;
  c.inputs = {
      normal_input({v.x_rows, v.x_first + (v.blocks - 1) * v.x_step + v.columns + v.x_spare},
                   DataType::kF32),
      normal_input({v.rows, v.y_first + (v.blocks - 1) * v.y_step + v.columns + v.y_spare},
                   DataType::kF32)};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    copy_columns(
        builder, inputs[0], inputs[1],
        {v.x_first, static_cast<uint32_t>(v.columns), v.y_first, v.blocks, v.x_step, v.y_step});
    return std::vector<Tensor>{inputs[1]};
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor y = inputs[1];
    y.bounds.assign(y.values.size(), 0);
    for (uint64_t row = 0; row < v.rows; ++row) {
      const double* from =
          &inputs[0].values[std::min(row, v.x_rows - 1) * inputs[0].shape.columns() + v.x_first];
      for (uint64_t block = 0; block < v.blocks; ++block)
        std::copy_n(from + block * v.x_step, v.columns,
                    y.values.begin() + static_cast<int64_t>(row * y.shape.columns() + v.y_first +
                                                            block * v.y_step));
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

class CopyCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,columns"; }
  bool exact(KernelTypes) const override { return true; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{512, 1536}, {1, 4096}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
      throw ShapeError("copy_columns", "a shape is two positive numbers",
                       "give rows,columns such as 512,1536");
    }
    return copy_columns_case({.rows = shape[0], .columns = shape[1], .x_rows = shape[0]}, types);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (uint64_t columns : {1, 5, 63, 64, 65, 1000}) {
      for (uint64_t rows : {1, 7})
        cases.push_back(
            copy_columns_case({.rows = rows, .columns = columns, .x_rows = rows}, types));
      cases.push_back(copy_columns_case({.rows = 3,
                                         .columns = columns,
                                         .x_rows = 3,
                                         .x_first = 2,
                                         .x_spare = 1,
                                         .y_first = 5,
                                         .y_spare = 4},
                                        types));
      cases.push_back(copy_columns_case(
          {.rows = 4, .columns = columns, .x_rows = 1, .x_first = 1, .y_first = 3}, types));
    }
    cases.push_back(copy_columns_case(
        {.rows = 5, .columns = 7, .x_rows = 5, .y_first = 3, .blocks = 4, .y_step = 9}, types));
    cases.push_back(copy_columns_case({.rows = 3,
                                       .columns = 12,
                                       .x_rows = 3,
                                       .x_first = 1,
                                       .blocks = 3,
                                       .x_step = 20,
                                       .y_step = 13},
                                      types));
    return cases;
  }
};

}  // namespace

const OpCases& copy_columns_cases() {
  static const CopyCases cases;
  return cases;
}

}  // namespace mulciber::conformance
