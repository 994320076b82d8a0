#include "layers/linear.h"

#include "ops/quantize.h"

namespace mulciber {

Tensor Linear::operator()(ProgramBuilder& builder, const Operand& x, Activation activation,
                          bool gated) const {
  return matmul(builder, x.norm ? x.x : operand(builder, x.x), weight,
                {.norm = x.norm,
                 .bias = bias,
                 .activation = activation,
                 .gated = gated,
                 .more_segments = more_segments});
}

Tensor Linear::padded(ProgramBuilder& builder, const Tensor& x) const {
  return matmul(builder, operand(builder, x), weight,
                {.bias = bias, .padded = true, .more_segments = more_segments});
}

void Linear::add_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y) const {
  matmul(builder, operand(builder, x), weight,
         {.bias = bias, .accumulate_into = y, .more_segments = more_segments});
}

void Linear::write_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y) const {
  matmul(builder, operand(builder, x), weight,
         {.bias = bias, .into = y, .more_segments = more_segments});
}

Tensor Linear::operand(ProgramBuilder& builder, const Tensor& x) const {
  const bool quantizes = integers && x.type == DataType::kF32 &&
                         integers_pay(builder.capabilities(), builder.rows_as(x.shape.rows()));
  return quantizes ? quantize(builder, x) : x;
}

}  // namespace mulciber
