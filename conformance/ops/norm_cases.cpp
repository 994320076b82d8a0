// Cases of layer_norm and softmax; conformance/op_cases.cpp declares them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/norm_reference.h"
#include "conformance/q8_1.h"
#include "mulciber/error.h"
#include "ops/norm.h"

namespace mulciber::conformance {

namespace {

void require_rows_and_columns(const char* op, std::span<const uint64_t> shape) {
  if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0) {
    throw ShapeError(op, "a shape is two positive numbers", "give rows,columns such as 768,768");
  }
}

struct NormVariant {
  bool residual = false;
  double offset = 0;     // added to all of x
  double deviation = 1;  // deviation of x's values
  double epsilon = 1e-5;
};

class LayerNormCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,columns"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{768, 768}, {64, 512}, {4, 512}, {256, 1024}, {4096, 768}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    require_rows_and_columns("layer norm", shape);
    return variant({shape[0], shape[1]}, types, {});
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    auto add = [&](Shape shape, NormVariant options = {}) {
      if (shape.columns() % block_elements(types.weight) == 0)
        cases.push_back(variant(shape, types, options));
    };
    for (uint64_t columns : {1,   2,   3,   4,   7,   8,   31,  32,  33,  63,   64,   65,
                             127, 128, 129, 255, 256, 257, 500, 512, 768, 1021, 1024, 2052}) {
      add({3, columns});
      add({2, columns}, {.residual = true});
    }
    add({97, 96});
    add({64, 768}, {.residual = true});
    add({3, 5, 40}, {.residual = true});
    add({300, 1028});  // above 1 MiB in f32: several nodes where the storage range is that small
    add({301, 1029}, {.residual = true});
    add({5, 67}, {.epsilon = 1e-12});
    add({5, 128}, {.deviation = 1e-4});
    add({5, 768}, {.deviation = 100});
    if (types.activation == DataType::kF32) {
      add({7, 768}, {.offset = 1e4});
      add({7, 515}, {.offset = -1e4});
      add({4, 64}, {.deviation = 1e15});
    }
    add({6, 100}, {.deviation = 0});  // zero variance: only the bias remains
    add({6, 101}, {.offset = 3, .deviation = 0});
    return cases;
  }

 private:
  static OpCase variant(Shape shape, KernelTypes types, NormVariant options) {
    OpCase c;
    c.types = types;
    c.name = fmt::format("r{}_c{}", shape.rows(), shape.columns());
    if (shape.rank() > 2) c.name += ".rank3";
    if (options.residual) c.name += ".residual";
    if (options.offset != 0) c.name += fmt::format(".offset_{}", name_part(options.offset));
    if (options.deviation != 1)
      c.name += fmt::format(".deviation_{}", name_part(options.deviation));
    if (options.epsilon != 1e-5) c.name += fmt::format(".epsilon_{}", name_part(options.epsilon));

    c.inputs = {normal_input(shape, types.activation, options.deviation, options.offset),
                normal_input({2, shape.columns()}, DataType::kF32)};
    if (options.residual) c.inputs.push_back(normal_input(shape, types.activation));

    c.build = [options, types](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      std::optional<Tensor> residual;
      if (options.residual) residual = inputs[2];
      return std::vector<Tensor>{layer_norm(builder, inputs[0], inputs[1],
                                            static_cast<float>(options.epsilon), residual,
                                            types.weight)};
    };
    c.degenerate = options.deviation == 0;
    c.must_pass = edge_of_a_unit(shape.columns()) || options.offset != 0 || options.deviation != 1;
    c.reference = [options, types](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor y =
          layer_norm_reference(inputs[0], inputs[1], options.residual ? &inputs[2] : nullptr,
                               static_cast<float>(options.epsilon));
      if (types.weight == DataType::kQ8_1) y = in_q8_1(y);
      return std::vector<CpuTensor>{std::move(y)};
    };
    return c;
  }
};

struct SoftmaxVariant {
  bool logarithm = false;
  double scale = 1;
  std::vector<uint32_t> counts;  // empty: no control
  uint32_t rows_per_count = 1;
  uint32_t causal_period = 0;
  double offset = 0;           // added to all of x
  bool poison_unseen = false;  // NaN and infinities where no row may look
  bool infinite_row = false;   // the first row is -inf throughout, the second except for one
};

class SoftmaxCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,columns"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{768, 768}, {96, 64}, {4096, 512}, {4, 32000}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    require_rows_and_columns("softmax", shape);
    return variant({shape[0], shape[1]}, types, {});
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    auto add = [&](Shape shape, SoftmaxVariant options = {}) {
      cases.push_back(variant(shape, types, std::move(options)));
    };
    for (uint64_t columns : {1,  2,   3,   4,   7,   8,   31,  32,  33,  63,   64,
                             65, 127, 128, 129, 255, 256, 257, 512, 768, 1021, 2052}) {
      add({3, columns});
      add({2, columns}, {.logarithm = true});
    }
    add({97, 96}, {.scale = 0.125});
    add({5, 40}, {.scale = -2});
    add({300, 1028});  // above 1 MiB in f32: several nodes where the storage range is that small
    add({301, 1029}, {.counts = std::vector<uint32_t>(43, 700), .rows_per_count = 7});
    add({9, 70}, {.offset = 1000});
    add({9, 70}, {.logarithm = true, .offset = -1000});
    add({8, 36}, {.infinite_row = true});
    add({8, 37}, {.infinite_row = true});
    for (uint64_t columns : {64, 37}) {
      for (bool logarithm : {false, true}) {
        // Counts: none, one, around the edges of a unit, all, more than exist.
        add({8, columns}, {.logarithm = logarithm,
                           .counts = {0, 1, 2, 3, 5, 36, 37, 1000},
                           .poison_unseen = true});
        add({12, columns}, {.logarithm = logarithm,
                            .counts = {0, 9, 30},
                            .rows_per_count = 4,
                            .poison_unseen = true});
        add({2, 3, 20, columns}, {.logarithm = logarithm, .causal_period = 20});
        add({2, 3, 40, columns}, {.logarithm = logarithm,
                                  .scale = 0.5,
                                  .counts = {0, 31},
                                  .rows_per_count = 120,
                                  .causal_period = 40,
                                  .poison_unseen = true});
      }
    }
    return cases;
  }

 private:
  static uint64_t visible_columns(const SoftmaxVariant& options, uint64_t columns, uint64_t row) {
    uint64_t visible = columns;
    if (!options.counts.empty()) {
      visible = std::min<uint64_t>(visible, options.counts[row / options.rows_per_count]);
    }
    if (options.causal_period > 0) visible = std::min(visible, row % options.causal_period + 1);
    return visible;
  }

  static OpCase variant(Shape shape, KernelTypes types, SoftmaxVariant options) {
    OpCase c;
    c.types = types;
    uint64_t columns = shape.columns();
    c.name = fmt::format("r{}_c{}", shape.rows(), columns);
    if (options.logarithm) c.name += ".log";
    if (options.scale != 1) c.name += fmt::format(".scale_{}", name_part(options.scale));
    if (!options.counts.empty()) c.name += fmt::format(".counts_per_{}", options.rows_per_count);
    if (options.causal_period > 0) c.name += ".causal";
    if (options.offset != 0) c.name += fmt::format(".offset_{}", name_part(options.offset));
    if (options.infinite_row) c.name += ".infinite";

    CaseInput x = normal_input(shape, types.activation, 3, options.offset);
    x.fill = [=, normal = x.fill](std::vector<double>& values, std::mt19937& random) {
      normal(values, random);
      if (options.infinite_row) {
        std::fill_n(values.begin(), 2 * columns, -kInfinity);
        values[columns + columns / 2] = 1;
      }
      if (!options.poison_unseen) return;
      const double poison[] = {std::nan(""), kInfinity, -kInfinity, 60000};
      for (uint64_t row = 0; row < shape.rows(); ++row) {
        for (uint64_t i = visible_columns(options, columns, row); i < columns; ++i) {
          values[row * columns + i] = poison[i % 4];
        }
      }
    };
    c.inputs = {x};
    ControlWords control(3, 0xffffffff);
    const ControlArray<uint32_t> counts = control.append(options.counts);
    if (!options.counts.empty()) c.inputs.push_back(words_input(control.words()));
    c.build = [options, counts](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      SoftmaxOptions given;
      given.logarithm = options.logarithm;
      given.scale = static_cast<float>(options.scale);
      if (!options.counts.empty()) {
        given.control = inputs[1];
        given.counts = counts;
      }
      given.rows_per_count = options.rows_per_count;
      given.causal_period = options.causal_period;
      return std::vector<Tensor>{softmax(builder, inputs[0], given)};
    };
    c.degenerate = columns == 1;
    c.must_pass = edge_of_a_unit(columns) || !options.counts.empty() || options.causal_period > 0 ||
                  options.infinite_row || options.offset != 0;
    c.reference = [options, columns](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor y{inputs[0].shape, inputs[0].type, {}, {}};
      for (uint64_t row = 0; row < y.shape.rows(); ++row) {
        softmax_reference({inputs[0].values.data() + row * columns, columns},
                          visible_columns(options, columns, row), options.scale, options.logarithm,
                          y);
      }
      return std::vector<CpuTensor>{y};
    };
    return c;
  }
};

}  // namespace

const OpCases& layer_norm_cases() {
  static const LayerNormCases cases;
  return cases;
}

const OpCases& softmax_cases() {
  static const SoftmaxCases cases;
  return cases;
}

}  // namespace mulciber::conformance
