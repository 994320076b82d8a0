// The position-wise feed-forward network.
#pragma once

#include <optional>

#include "layers/linear.h"

namespace mulciber {

/// Computes y = activation(x W1^T + b1) W2^T + b2, or gated: y = (activation(x G^T) * (x U^T))
/// W2^T.
/// Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.3; Shazeer 2020, arXiv:2002.05202.
struct FeedForward {
  Linear up;    // (F, D); gated: (2 F, D), interleaved rows of gate and up
  Linear down;  // (D, F)
  Activation activation = Activation::kRelu;
  bool gated = false;

  /// x, result: (..., D). With `add_to` the result is added to that tensor (pre-norm residual
  /// stream).
  Tensor operator()(ProgramBuilder& builder, const Operand& x,
                    const std::optional<Tensor>& add_to = std::nullopt,
                    const AdapterScales* adapters = nullptr) const;
};

}  // namespace mulciber
