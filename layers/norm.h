// Layer normalization with learned gain and bias.
#pragma once

#include <optional>

#include "runtime/ops/norm.h"

namespace mulciber {

/// Source: Ba et al. 2016, arXiv:1607.06450.
struct LayerNorm {
  Tensor gain_bias;  // (2, D) f32, gain first
  float epsilon = 1e-5f;

  /// Normalizes x [+ residual] over the last dimension. x, residual, result: (..., D).
  Tensor operator()(ProgramBuilder& builder, const Tensor& x,
                    const std::optional<Tensor>& residual = std::nullopt) const {
    return layer_norm(builder, x, gain_bias, epsilon, residual);
  }
};

}  // namespace mulciber
