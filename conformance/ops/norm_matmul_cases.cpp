// A product that normalizes its row of x first: both references one after the other.
#include <fmt/format.h>

#include <cmath>

#include "conformance/block_input.h"
#include "conformance/op_case.h"
#include "conformance/ops/activation_reference.h"
#include "conformance/ops/norm_reference.h"
#include "conformance/ops/product_reference.h"
#include "mulciber/error.h"
#include "ops/matmul.h"

namespace mulciber::conformance {
namespace {

constexpr float kNormMatmulEpsilon = 1e-5f;

struct NormMatmulVariant {
  Activation activation = Activation::kNone;
  bool gated = false, accumulate = false;
  double deviation = 1;  // deviation of x's values
};

/// The row of x after the norm, with bounds.
CpuTensor normalized_row(const CpuTensor& x, const CpuTensor& gain) {
  std::vector<Bounded> row(x.values.begin(), x.values.end());
  rms_norm_reference(row, kNormMatmulEpsilon);
  CpuTensor result{x.shape, x.type, {}, {}};
  for (size_t i = 0; i < row.size(); ++i) {
    // The product takes the values from registers: the bounds hold only their roundings.
    const Bounded value = row[i] * Bounded(gain.values[i]);
    result.values.push_back(value.value);
    result.bounds.push_back(value.error);
  }
  return result;
}

OpCase norm_matmul_case(uint64_t n, uint64_t k, KernelTypes types, NormMatmulVariant options) {
  const Shape result = {1, options.gated ? n / 2 : n};
  OpCase c;
  c.types = types;
  c.name = fmt::format("n{}_k{}", n, k);
  if (options.activation != Activation::kNone)
    c.name += fmt::format(".{}", name_of(options.activation));
  if (options.gated) c.name += ".gated";
  if (options.accumulate) c.name += ".accumulate";
  if (options.deviation != 1) c.name += fmt::format(".deviation_{}", name_part(options.deviation));
  if (is_block_type(types.weight) || types.weight == DataType::kBF16)
    c.name += fmt::format(".{}", name_of(types.weight));
  c.degenerate = options.deviation == 0;
  c.must_pass = options.gated || options.deviation != 1 || n > 1000;
  c.inputs = {normal_input({1, k}, DataType::kF32, options.deviation),
              normal_input({n, k}, types.weight, 1 / std::sqrt(double(k))),
              normal_input({k}, DataType::kF32)};
  if (options.accumulate) c.inputs.push_back(normal_input(result, DataType::kF32));

  c.build = [options](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    MatmulOptions given = {.norm = RowNorm{inputs[2], kNormMatmulEpsilon},
                           .activation = options.activation,
                           .gated = options.gated};
    if (options.accumulate) given.accumulate_into = inputs[3];
    return std::vector<Tensor>{matmul(builder, inputs[0], inputs[1], given)};
  };
  c.reference = [options, result](std::span<const CpuTensor> inputs, const Arithmetic& arithmetic) {
    const CpuTensor x = normalized_row(inputs[0], inputs[2]);
    const Product product(x, inputs[1], nullptr, arithmetic);
    CpuTensor y{result, DataType::kF32, {}, {}};
    for (uint64_t j = 0; j < result.columns(); ++j) {
      Bounded value =
          activation_reference(product.at(0, options.gated ? 2 * j : j), options.activation);
      if (options.gated) value = value * product.at(0, 2 * j + 1);
      if (options.accumulate) value = value + Bounded(inputs[3].values[j]);
      append(y, value);
    }
    return std::vector<CpuTensor>{y};
  };
  return c;
}

class NormMatmulCases : public OpCases {
 public:
  std::string shape_format() const override { return "N,K"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{2048, 768}, {3072, 2048}, {256, 256}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    const KernelTypes concrete = plain_types(types);
    if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0 ||
        shape[1] % block_elements(concrete.weight) != 0) {
      throw ShapeError("norm_matmul",
                       "a shape is two positive numbers, the second in whole blocks of the weight",
                       "give N,K such as 2048,768");
    }
    return norm_matmul_case(shape[0], shape[1], concrete, {});
  }

  std::vector<OpCase> samples(KernelTypes row_types) const override {
    std::vector<OpCase> cases;
    if (of_blocks(row_types.weight)) {
      for (const KernelTypes& types : concrete_types(row_types)) {
        if (is_grid_type(types.weight) && !covers_blocks(types.weight)) continue;
        cases.push_back(norm_matmul_case(37, 768 - block_elements(types.weight), types, {}));
        cases.push_back(norm_matmul_case(70, 512, types, {.accumulate = true}));
      }
      const KernelTypes plain = plain_types(row_types);
      cases.push_back(
          norm_matmul_case(74, 256, plain, {.activation = Activation::kSilu, .gated = true}));
      cases.push_back(norm_matmul_case(515, 1280, plain, {}));
      return cases;
    }
    const KernelTypes types = plain_types(row_types);
    // Rows shorter and longer than the invocations that sum their squares, 4 columns each.
    for (uint64_t k : {1, 2, 7, 19, 40, 64, 504, 512, 520, 768, 1032, 2056})
      cases.push_back(norm_matmul_case(37, k, types, {}));
    cases.push_back(norm_matmul_case(1, 64, types, {}));
    cases.push_back(norm_matmul_case(515, 776, types, {}));
    cases.push_back(norm_matmul_case(1030, 320, types, {}));  // above 1 MiB in f32: several nodes
    cases.push_back(
        norm_matmul_case(74, 136, types, {.activation = Activation::kSilu, .gated = true}));
    cases.push_back(norm_matmul_case(
        38, 264, types, {.activation = Activation::kGeluTanh, .gated = true, .accumulate = true}));
    cases.push_back(norm_matmul_case(40, 96, types, {.accumulate = true}));
    for (double deviation : {0.0, 1e-4, 1e4})
      cases.push_back(norm_matmul_case(40, 256, types, {.deviation = deviation}));
    if (row_types.weight == DataType::kHalf) {
      cases.push_back(norm_matmul_case(37, 264, {types.activation, DataType::kBF16}, {}));
      cases.push_back(norm_matmul_case(515, 776, {types.activation, DataType::kBF16}, {}));
    }
    return cases;
  }
};

}  // namespace

const OpCases& norm_matmul_cases() {
  static const NormMatmulCases cases;
  return cases;
}

}  // namespace mulciber::conformance
