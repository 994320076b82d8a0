#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "conformance/op_case.h"
#include "conformance/ops/activation_reference.h"
#include "mulciber/error.h"
#include "runtime/ops/matmul.h"

namespace mulciber::conformance {

namespace {

struct Variant {
  Activation activation = Activation::kNone;
  bool bias = false;
  bool accumulate = false;
  uint64_t columns_before = 0, columns_after = 0;  // of a wider result that already exists
  double deviation = 1;                            // of x
};

class MatmulCases : public OpCases {
 public:
  Op op() const override { return Op::kMatmul; }
  std::string shape_format() const override { return "M,N,K"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{64, 2048, 768}, {8, 2048, 768}, {1, 2048, 768}, {1, 8000, 256},
            {64, 256, 256},  {16, 128, 128}, {64, 1024, 256}, {256, 768, 2048}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 3 || shape[0] == 0 || shape[1] == 0 || shape[2] == 0) {
      throw ShapeError("matmul", "a shape is three positive numbers", "give M,N,K such as 64,2048,768");
    }
    return variant({shape[0]}, shape[1], shape[2], types, {});
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    auto add = [&](std::vector<uint64_t> rows, uint64_t n, uint64_t k, Variant options = {}) {
      cases.push_back(variant(rows, n, k, types, options));
    };
    // Every edge of every tile: one, primes, a power of two and its neighbours.
    for (uint64_t m : {1, 2, 3, 7, 8, 9, 16, 31, 33}) {
      add({m}, 1, 1);
      add({m}, 37, 19);
      add({m}, 64, 64);
    }
    add({17}, 129, 67);
    add({64}, 96, 256);
    add({65}, 63, 72);
    add({127}, 130, 40);
    add({129}, 257, 36);
    add({1}, 515, 770);
    add({4}, 1000, 256);
    add({2, 5}, 48, 96);
    add({2, 3, 7}, 20, 24);
    add({20}, 1030, 320);  // above 1 MiB in f32: several nodes where the storage range is that small
    add({300}, 70, 1028);
    add({66}, 260, 40);  // several large tiles, with edges
    add({130}, 271, 64, {.activation = Activation::kGelu, .bias = true});
    add({20}, 300, 128, {.bias = true, .accumulate = true, .columns_before = 3});
    for (Activation function : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                Activation::kSilu, Activation::kTanh}) {
      add({5}, 40, 36, {.activation = function, .bias = true});
      // Of large sums that cancel, tanh shows an error that no share of the result bounds.
      if (function != Activation::kTanh) add({19}, 40, 36, {.activation = function, .deviation = 1e4});
    }
    for (uint64_t m : {1, 6, 21, 70}) {
      add({m}, 43, 32, {.bias = true});
      add({m}, 43, 32, {.activation = Activation::kRelu, .bias = true, .accumulate = true});
      add({m}, 24, 29, {.bias = true, .columns_before = 24, .columns_after = 24});
      add({m}, 31, 64, {.columns_before = 5, .columns_after = 3});
      add({m}, 31, 64, {.accumulate = true, .columns_before = 3, .columns_after = 1});
    }
    return cases;
  }

 private:
  static OpCase variant(std::vector<uint64_t> rows, uint64_t n, uint64_t k, KernelTypes types,
                        Variant options) {
    auto shape = [&](uint64_t columns) {
      std::vector<uint64_t> extents = rows;
      extents.push_back(columns);
      return Shape(extents);
    };
    uint64_t total = options.columns_before + n + options.columns_after;
    bool existing = options.accumulate || total != n;
    Shape result = shape(total);

    OpCase c;
    c.types = types;
    c.name = fmt::format("m{}_n{}_k{}", fmt::join(rows, "x"), n, k);
    if (options.activation != Activation::kNone) c.name += fmt::format(".{}", name_of(options.activation));
    if (options.bias) c.name += ".bias";
    if (options.accumulate) c.name += ".accumulate";
    if (total != n) c.name += fmt::format(".columns_{}_of_{}", options.columns_before, total);
    if (options.deviation != 1) c.name += ".large";

    c.inputs.push_back(normal_input(shape(k), types.activation, options.deviation));
    c.inputs.push_back(normal_input({n, k}, types.weight, 1 / std::sqrt(double(k))));
    if (options.bias) c.inputs.push_back(normal_input({n}, DataType::kF32));
    if (existing) c.inputs.push_back(normal_input(result, types.activation));

    c.build = [options, existing](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      MatmulOptions given;
      if (options.bias) given.bias = inputs[2];
      if (options.accumulate) {
        given.accumulate_into = inputs.back();
      } else if (existing) {
        given.into = inputs.back();
      }
      given.activation = options.activation;
      given.first_column = static_cast<uint32_t>(options.columns_before);
      return std::vector<Tensor>{matmul(builder, inputs[0], inputs[1], given)};
    };
    c.reference = [options, existing, n, k, total, result](std::span<const HostTensor> inputs) {
      const std::vector<double>&x = inputs[0].values, &w = inputs[1].values;
      HostTensor y{result, inputs[0].type, std::vector<double>(result.elements())};
      if (existing) y.values = inputs.back().values;
      for (uint64_t i = 0; i < result.rows(); ++i) {
        for (uint64_t j = 0; j < n; ++j) {
          double sum = options.bias ? inputs[2].values[j] : 0;
          for (uint64_t p = 0; p < k; ++p) sum += x[i * k + p] * w[j * k + p];
          double value = activation_reference(sum, options.activation);
          double& place = y.values[i * total + options.columns_before + j];
          place = options.accumulate ? place + value : value;
        }
      }
      return std::vector<HostTensor>{y};
    };
    return c;
  }
};

}  // namespace

const OpCases& matmul_cases() {
  static const MatmulCases cases;
  return cases;
}

}  // namespace mulciber::conformance
