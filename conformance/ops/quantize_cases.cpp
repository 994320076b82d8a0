// Cases and reference of quantize; conformance/op_cases.cpp declares the cases.
#include "ops/quantize.h"

#include <fmt/format.h>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/q8_1.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

OpCase quantize_case(const Shape& shape, KernelTypes types, double deviation) {
  OpCase c;
  c.types = types;
  c.name = fmt::format("r{}_c{}", shape.rows(), shape.columns());
  if (shape.rank() > 2) c.name += ".rank3";
  if (deviation != 1) c.name += fmt::format(".deviation_{}", name_part(deviation));
  c.degenerate = deviation == 0;
  c.must_pass = deviation != 1;
  c.inputs = {normal_input(shape, types.activation, deviation)};
  c.build = [](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    return std::vector<Tensor>{quantize(builder, inputs[0])};
  };
  c.reference = [shape, types](std::span<const CpuTensor> inputs, const Arithmetic&) {
    CpuTensor y{shape, types.weight, {}, {}};
    const std::vector<Bounded> values(inputs[0].values.begin(), inputs[0].values.end());
    append_q8_1(y, values);  // rows are whole blocks
    return std::vector<CpuTensor>{y};
  };
  return c;
}

class QuantizeCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,columns"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 2048}, {1, 8192}, {64, 2048}, {512, 2048}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0 || shape[1] % 32 != 0) {
      throw ShapeError("quantize", "a shape is two positive numbers, the second in whole blocks",
                       "give rows,columns such as 64,2048");
    }
    return quantize_case({shape[0], shape[1]}, types, 1);
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    // Odd numbers of blocks, after which rows are padded, and more than a workgroup.
    for (uint64_t columns : {32, 64, 96, 160, 2048, 2080, 2112, 5152}) {
      cases.push_back(quantize_case({1, columns}, types, 1));
      cases.push_back(quantize_case({5, columns}, types, 1));
    }
    cases.push_back(quantize_case({2, 3, 96}, types, 1));
    // Above 1 MiB in f32: several nodes where the storage range is that small.
    cases.push_back(quantize_case({260, 1056}, types, 1));
    for (double deviation : {0.0, 1e-30, 1e-3, 100.0, 1e30})
      cases.push_back(quantize_case({3, 160}, types, deviation));
    return cases;
  }
};

}  // namespace

const OpCases& quantize_cases() {
  static const QuantizeCases cases;
  return cases;
}

}  // namespace mulciber::conformance
