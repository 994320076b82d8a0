#include "layers/linear.h"

namespace mulciber {

Tensor Linear::operator()(ProgramBuilder& builder, const Tensor& x, Activation activation,
                          bool gated) const {
  return matmul(builder, x, weight,
                {.bias = bias, .activation = activation, .gated = gated, .below = below});
}

void Linear::add_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y) const {
  matmul(builder, x, weight, {.bias = bias, .accumulate_into = y, .below = below});
}

void Linear::write_to(ProgramBuilder& builder, const Tensor& x, const Tensor& y) const {
  matmul(builder, x, weight, {.bias = bias, .into = y, .below = below});
}

}  // namespace mulciber
