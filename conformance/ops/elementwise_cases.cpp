#include "runtime/ops/elementwise.h"

#include <fmt/format.h>

#include "conformance/op_case.h"
#include "conformance/ops/activation_reference.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

class ElementwiseCases : public OpCases {
 public:
  Op op() const override { return Op::kElementwise; }
  std::string shape_format() const override { return "ELEMENTS"; }

  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{64 * 768}, {4 << 20}};
  }

  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 1 || shape[0] == 0) {
      throw ShapeError("elementwise", "a shape is one positive number", "give a count such as 1048576");
    }
    if (types.activation == types.weight) return sum({shape[0]}, types);
    return pointwise({shape[0]}, types, Activation::kNone, 1);
  }

  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (uint64_t count : {1, 2, 3, 4, 5, 7, 31, 64, 255, 256, 257, 1021, 300007}) {
      if (types.activation == types.weight) cases.push_back(sum({count}, types));
      cases.push_back(pointwise({count}, types, Activation::kNone, 100));
    }
    if (types.activation != types.weight) return cases;
    cases.push_back(sum({3, 5, 11}, types));
    for (Activation function : {Activation::kRelu, Activation::kGelu, Activation::kGeluTanh,
                                Activation::kSilu, Activation::kTanh}) {
      for (double deviation : {0.01, 1.0, 1e4}) {
        cases.push_back(pointwise({7, 143}, types, function, deviation));
      }
    }
    return cases;
  }

 private:
  static OpCase sum(Shape shape, KernelTypes types) {
    OpCase c;
    c.name = fmt::format("n{}.add", shape.elements());
    c.types = types;
    c.inputs = {normal_input(shape, types.activation), normal_input(shape, types.activation)};
    c.build = [](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      return std::vector<Tensor>{add(builder, inputs[0], inputs[1])};
    };
    c.reference = [](std::span<const HostTensor> inputs) {
      HostTensor y = inputs[0];
      for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += inputs[1].values[i];
      return std::vector<HostTensor>{y};
    };
    return c;
  }

  // An activation, or without one a conversion.
  static OpCase pointwise(Shape shape, KernelTypes types, Activation function, double deviation) {
    OpCase c;
    c.name = fmt::format("n{}.{}_{}", shape.elements(),
                         function == Activation::kNone ? "convert" : name_of(function), name_part(deviation));
    c.types = types;
    c.inputs = {normal_input(shape, types.activation, deviation)};
    c.build = [function, types](ProgramBuilder& builder, std::span<const Tensor> inputs) {
      return std::vector<Tensor>{function == Activation::kNone
                                     ? convert(builder, inputs[0], types.weight)
                                     : activate(builder, inputs[0], function)};
    };
    c.reference = [function, types](std::span<const HostTensor> inputs) {
      HostTensor y = inputs[0];
      y.type = types.weight;
      for (double& value : y.values) value = activation_reference(value, function);
      return std::vector<HostTensor>{y};
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
