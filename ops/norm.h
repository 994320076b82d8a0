// Layer and root-mean-square normalization, and softmax: reductions over rows.
#pragma once

#include <optional>

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// Computes y = (x [+ residual] - mean) / sqrt(variance + epsilon) * gain + bias, per row.
/// x, residual: (..., columns) f32 or f16; gain_bias: (2, columns) f32, gain first. Result: x's
/// shape and type, or of type `to`: q8_1 for x in f32, for products (ops/quantize.h).
/// Source: Ba et al. 2016, arXiv:1607.06450. Throws ShapeError naming the layer.
Tensor layer_norm(ProgramBuilder& builder, const Tensor& x, const Tensor& gain_bias, float epsilon,
                  const std::optional<Tensor>& residual = std::nullopt,
                  std::optional<DataType> to = std::nullopt);

/// Computes y = x / sqrt(mean(x^2) + epsilon) * gain, per row.
/// x: (..., columns) f32 or f16; gain: (columns) f32 (a gain of 1 + w is added up when weights are
/// loaded). Result: x's shape and type, or of type `to` as for layer_norm(). Source: Zhang and
/// Sennrich 2019, arXiv:1910.07467. Throws ShapeError naming the layer.
Tensor rms_norm(ProgramBuilder& builder, const Tensor& x, const Tensor& gain, float epsilon,
                std::optional<DataType> to = std::nullopt);

/// Adds x to a residual stream, in place, and returns rms_norm(stream, gain), in one dispatch.
/// stream, x: (..., columns), both f32 or both f16. Result: x's shape and type, or of type `to` as
/// for layer_norm(). gains: (columns) f32: stream += x. Or (2, columns) f32: stream += rms_norm(x,
/// row 0), for models that normalize a sublayer's result (Gemma 3), and the result uses row 1. Both
/// norms share epsilon. The result is computed from the sums before they are rounded to the
/// stream's type.
Tensor add_rms_norm(ProgramBuilder& builder, const Tensor& stream, const Tensor& x,
                    const Tensor& gains, float epsilon, std::optional<DataType> to = std::nullopt);

/// Normalizes groups of columns of each row of x, in place and each group by itself: to root mean
/// square 1, or `centered` like layer norm without a bias; then multiplies by the group's gains. x:
/// (..., columns) f32 or f16; gains: (groups, width) f32 for the groups that begin with
/// first_column. In f16 width, first_column and number of columns are even. Source: Dehghani et al.
/// 2023, arXiv:2302.05442. Throws ShapeError naming the layer.
void norm_columns(ProgramBuilder& builder, const Tensor& x, uint64_t first_column,
                  const Tensor& gains, float epsilon, bool centered);

struct SoftmaxOptions {
  bool logarithm = false;  // log-softmax
  float scale = 1;         // factor of x, applied first
  /// Row r sees columns below counts[r / rows_per_count]; other columns give 0 (-inf for the
  /// logarithm). A row that sees no column gives zeros.
  std::optional<Tensor> control;  // u32
  ControlArray<uint32_t> counts;
  uint32_t rows_per_count = 1;
  /// Above 0: row r also sees only columns <= r % causal_period.
  uint32_t causal_period = 0;
};

/// Softmax over the last dimension with the maximum subtracted and sums in f32. x: (..., columns).
/// Result: x's shape and type.
Tensor softmax(ProgramBuilder& builder, const Tensor& x, const SoftmaxOptions& options = {});

}  // namespace mulciber
