// Layer normalization and softmax: reductions over rows.
#pragma once

#include <optional>

#include "runtime/program.h"

namespace mulciber {

/// y = (x [+ residual] - mean) / sqrt(variance + epsilon) * gain + bias, per row.
/// x, residual: (..., columns) f32 or f16; gain_bias: (2, columns) f32, gain first; result like x.
/// Source: Ba et al. 2016, arXiv:1607.06450. Throws ShapeError naming the layer.
Tensor layer_norm(ProgramBuilder& builder, const Tensor& x, const Tensor& gain_bias, float epsilon,
                  const std::optional<Tensor>& residual = std::nullopt);

struct SoftmaxOptions {
  bool logarithm = false;  // log-softmax
  float scale = 1;         // onto x first
  /// Row r sees columns below control[counts_offset + r / rows_per_count]; the others give 0 (-inf for
  /// the logarithm). A row that sees none gives zeros.
  std::optional<Tensor> control;  // u32
  uint32_t counts_offset = 0;
  uint32_t rows_per_count = 1;
  /// > 0: row r also sees only columns <= r % causal_period.
  uint32_t causal_period = 0;
};

/// Softmax over the last dimension, sums in f32, maximum subtracted. x: (..., columns); result like x.
Tensor softmax(ProgramBuilder& builder, const Tensor& x, const SoftmaxOptions& options = {});

}  // namespace mulciber
