// Cases and reference of elementwise; conformance/op_cases.cpp declares the cases.
#include "ops/elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/activation_reference.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

class ElementwiseCases : public OpCases {
 public:
  std::string shape_format() const override { return "ELEMENTS"; }
  bool exact(KernelTypes) const override { return true; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{64 * 768}, {4 << 20}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 1 || shape[0] == 0) {
      throw ShapeError("elementwise", "a shape is one positive number",
                       "give a count such as 1048576");
    }
    if (types.activation == types.weight) return sum({shape[0]}, types);
    return pointwise({shape[0]}, types, Activation::kNone, 1);
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    const bool same = types.activation == types.weight;
    for (uint64_t count : {1, 2, 3, 4, 5, 7, 31, 64, 255, 256, 257, 1021, 300007}) {
      if (same) cases.push_back(sum({count}, types));
      cases.push_back(pointwise({count}, types, Activation::kNone, 100));
    }
    for (uint64_t count : {1, 6, 63, 65, 259, 4099}) {
      if (same) cases.push_back(sum({count}, types, kWhole));
      cases.push_back(pointwise({count}, types, Activation::kNone, kWhole));
      if (same) cases.push_back(pointwise({count}, types, Activation::kRelu, kWhole));
    }
    // Numbers below the normal ones: only their own value or zero is right.
    cases.push_back(pointwise({1027}, types, Activation::kNone, 0x1p-16));
    if (!same) return cases;
    cases.push_back(sum({3, 5, 11}, types));
    for (uint64_t count : {1, 3, 258, 4097}) cases.push_back(filled({count}, types));
    for (const double cap : {0.0, 0.5, 30.0}) {
      for (uint64_t count : {3, 258, 4097}) cases.push_back(scaled({count}, types, cap));
    }
    for (uint64_t count : {3, 4097}) cases.push_back(clipped({count}, types));
    for (const Shape& shape : {Shape{1, 1}, Shape{5, 7}, Shape{3, 64}, Shape{67, 13}})
      cases.push_back(gated(shape, types));
    for (const RowCase& rows : {RowCase{2, 3, 8, 2, 5}, RowCase{5, 1, 13, 3, 3}})
      cases.push_back(scaled_by_row(rows, types));
    for (const Shape& shape : {Shape{3, 7}, Shape{5, 64}})
      for (const float limit : {0.0f, 1.5f}) cases.push_back(pairs(shape, types, limit));
    for (Activation function : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                Activation::kSilu, Activation::kTanh, Activation::kQuickGelu}) {
      for (double deviation : {0.01, 1.0, 8.0, 1e4}) {
        cases.push_back(pointwise({7, 143}, types, function, deviation));
      }
    }
    return cases;
  }

 private:
  static constexpr double kWhole = 0;  // instead of a deviation: whole numbers

  static CaseInput operand(Shape shape, DataType type, double deviation, int largest) {
    return deviation == kWhole ? whole_input(shape, type, largest)
                               : normal_input(shape, type, deviation);
  }

  static OpCase sum(Shape shape, KernelTypes types, double deviation = 1) {
    OpCase c;
    c.name = fmt::format("n{}.add", shape.elements());
    c.exact = deviation == kWhole;
    if (c.exact) c.name += ".exact";
    c.types = types;
    c.inputs = {operand(shape, types.activation, deviation, 1000),
                operand(shape, types.activation, deviation, 999)};
    c.build = [](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      return std::vector<Tensor>{add(builder, inputs[0], inputs[1])};
    };
    c.reference = [types](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor y{inputs[0].shape, types.weight, {}, {}};
      for (size_t i = 0; i < inputs[0].values.size(); ++i) {
        append(y, Bounded(inputs[0].values[i]) + Bounded(inputs[1].values[i]));
      }
      return std::vector<CpuTensor>{y};
    };
    return c;
  }

  static OpCase filled(Shape shape, KernelTypes types) {
    constexpr float kValue = -1.5f;
    OpCase c;
    c.name = fmt::format("n{}.fill", shape.elements());
    c.exact = true;
    c.degenerate = true;  // the case is about equal numbers
    c.types = types;
    c.inputs = {words_input({0})};  // not read
    c.build = [=](ProgramBuilder& builder, std::span<const Tensor>) {
      return std::vector<Tensor>{fill(builder, shape, kValue, types.weight)};
    };
    c.reference = [=](std::span<const CpuTensor>, const Arithmetic&) {
      CpuTensor y{shape, types.weight, {}, {}};
      for (uint64_t i = 0; i < shape.elements(); ++i) append(y, Bounded(kValue));
      return std::vector<CpuTensor>{y};
    };
    return c;
  }

  static OpCase scaled(Shape shape, KernelTypes types, double cap) {
    constexpr float kScale = 0.375f;  // so that caps apply
    OpCase c;
    c.name = fmt::format("n{}.scale.cap_{}", shape.elements(), name_part(cap));
    c.types = types;
    c.must_pass = shape.elements() == 258 && cap > 0;
    c.inputs = {operand(shape, types.activation, cap > 1 ? 40 : 1, 0)};
    c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      return std::vector<Tensor>{
          scale_and_cap(builder, inputs[0], kScale, static_cast<float>(cap))};
    };
    c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor y{inputs[0].shape, types.weight, {}, {}};
      for (double x : inputs[0].values) {
        const Bounded scaled = Bounded(x) * Bounded(kScale);
        append(y, cap > 0 ? Bounded(cap) * tanh(scaled / Bounded(cap)) : scaled);
      }
      return std::vector<CpuTensor>{y};
    };
    return c;
  }

  static OpCase clipped(Shape shape, KernelTypes types) {
    constexpr float kLimit = 0.75f;
    OpCase c;
    c.name = fmt::format("n{}.clip", shape.elements());
    c.types = types;
    c.must_pass = shape.elements() > 3;
    c.inputs = {operand(shape, types.activation, 1, 0)};
    c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      return std::vector<Tensor>{clip(builder, inputs[0], kLimit)};
    };
    c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor y{inputs[0].shape, types.weight, {}, {}};
      for (double x : inputs[0].values) append(y, Bounded(std::clamp<double>(x, -kLimit, kLimit)));
      return std::vector<CpuTensor>{y};
    };
    return c;
  }

  static OpCase gated(Shape shape, KernelTypes types) {
    OpCase c;
    c.name = fmt::format("r{}_c{}.gates", shape.rows(), shape.columns());
    c.types = types;
    c.must_pass = shape.rows() == 67;
    c.inputs = {operand(shape, types.activation, 1, 0),
                operand({shape.rows(), 1}, types.activation, 4, 0)};
    c.build = [](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      return std::vector<Tensor>{gate_rows(builder, inputs[0], inputs[1])};
    };
    c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor y{inputs[0].shape, types.weight, {}, {}};
      for (uint64_t i = 0; i < shape.elements(); ++i) {
        const double gate = inputs[1].values[i / shape.columns()];
        append(y, Bounded(inputs[0].values[i]) * (Bounded(1) / (Bounded(1) + exp(Bounded(-gate)))));
      }
      return std::vector<CpuTensor>{y};
    };
    return c;
  }

  /// Rows of a batch with tokens in two parts, each as wide as the scales in use.
  struct RowCase {
    uint32_t rows, tokens, per_row, first, count;
  };

  static OpCase scaled_by_row(const RowCase& rows, KernelTypes types) {
    const uint64_t columns = uint64_t{2} * rows.count;
    const Shape shape = {rows.rows, rows.tokens, columns};
    constexpr uint32_t kBefore = 3;  // words before the scales
    std::vector<uint32_t> words(kBefore + rows.rows * rows.per_row, 0x7fc00000);  // NaN
    const auto scale = [](uint64_t row, uint64_t number) {
      return number % 3 == 1 ? 0.0f : 0.25f * static_cast<float>(row + number + 1);
    };
    for (uint32_t row = 0; row < rows.rows; ++row) {
      for (uint32_t i = rows.first; i < rows.first + rows.count; ++i)
        words[kBefore + row * rows.per_row + i] = std::bit_cast<uint32_t>(scale(row, i));
    }
    OpCase c;
    c.name = fmt::format("r{}_t{}_c{}.row_scales", rows.rows, rows.tokens, columns);
    c.types = types;
    c.must_pass = rows.tokens > 1;
    c.inputs = {operand(shape, types.activation, 1, 0), words_input(words)};
    c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      return std::vector<Tensor>{scale_by_row(
          builder, inputs[0],
          {inputs[1], {kBefore, rows.rows * rows.per_row}, rows.per_row, rows.first, rows.count})};
    };
    c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor y{shape, types.weight, {}, {}};
      for (uint64_t i = 0; i < shape.elements(); ++i) {
        const uint64_t row = i / columns / rows.tokens, number = i % columns % rows.count;
        append(y, Bounded(inputs[0].values[i]) * Bounded(scale(row, rows.first + number)));
      }
      return std::vector<CpuTensor>{y};
    };
    return c;
  }

  static OpCase pairs(const Shape& shape, KernelTypes types, float limit) {
    const Shape both = {shape.rows(), 2 * shape.columns()};
    OpCase c;
    c.name =
        fmt::format("r{}_c{}.pairs{}", shape.rows(), shape.columns(), limit > 0 ? ".limit" : "");
    c.types = types;
    c.must_pass = shape.rows() == 3;
    c.inputs = {operand(both, types.activation, 2, 0)};
    c.build = [limit](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      return std::vector<Tensor>{gate_pairs(builder, inputs[0], Activation::kSilu, limit)};
    };
    c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor y{shape, types.weight, {}, {}};
      for (uint64_t i = 0; i < shape.elements(); ++i) {
        double gate = inputs[0].values[2 * i];
        Bounded value(inputs[0].values[2 * i + 1]);
        if (limit > 0) {
          gate = std::min(gate, double{limit});
          value = Bounded(std::clamp(value.value, -double{limit}, double{limit})) + Bounded(1);
        }
        append(y, activation_reference({gate, 0}, Activation::kSilu) * value);
      }
      return std::vector<CpuTensor>{y};
    };
    return c;
  }

  // An activation, or without one a conversion.
  static OpCase pointwise(Shape shape, KernelTypes types, Activation function, double deviation) {
    OpCase c;
    c.name = fmt::format("n{}.{}", shape.elements(),
                         function == Activation::kNone ? "convert" : name_of(function));
    c.exact = deviation == kWhole;
    c.subnormal = deviation > 0 && deviation < 1e-3;
    // tanh of such numbers is 1 or -1, and small numbers may be flushed to zero: these cases are
    // about that.
    c.degenerate = c.subnormal || (function == Activation::kTanh && deviation == 1e4);
    c.name += c.exact ? ".exact" : c.subnormal ? ".subnormal" : "_" + name_part(deviation);
    c.types = types;
    c.must_pass = function != Activation::kNone || c.subnormal || shape.elements() == 257;
    c.inputs = {operand(shape, types.activation, deviation, 2000)};
    c.build = [function, types](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      return std::vector<Tensor>{function == Activation::kNone
                                     ? convert(builder, inputs[0], types.weight)
                                     : activate(builder, inputs[0], function)};
    };
    c.reference = [function, types](std::span<const CpuTensor> inputs, const Arithmetic&) {
      CpuTensor y{inputs[0].shape, types.weight, {}, {}};
      for (double x : inputs[0].values) {
        const bool flushed = inputs[0].type == DataType::kF16 && std::fabs(x) < kSmallest16;
        append(y, activation_reference({x, flushed ? std::fabs(x) : 0}, function));
      }
      return std::vector<CpuTensor>{y};
    };
    return c;
  }
};

}  // namespace

const OpCases& elementwise_cases() {
  static const ElementwiseCases cases;
  return cases;
}

}  // namespace mulciber::conformance
