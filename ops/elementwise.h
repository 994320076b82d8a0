// Pointwise operations: sums, activations, copies and conversions between storage types.
#pragma once

#include "ops/control.h"
#include "ops/matmul.h"

namespace mulciber {

/// Returns a + b; both of one shape and type.
Tensor add(ProgramBuilder& builder, const Tensor& a, const Tensor& b);
/// Returns activation(x).
Tensor activate(ProgramBuilder& builder, const Tensor& x, Activation activation);
/// Returns scale * x, or with a cap above 0: cap * tanh(scale * x / cap), which is nearly scale * x
/// where that is small and never exceeds the cap. Source: Gemma Team 2024, arXiv:2408.00118,
/// section 2.
Tensor scale_and_cap(ProgramBuilder& builder, const Tensor& x, float scale, float cap);
/// Clamps x to [-limit, limit]; limit is above 0.
Tensor clip(ProgramBuilder& builder, const Tensor& x, float limit);
/// Multiplies each row of x by the sigmoid of its gate. x: (..., C); gates: (..., 1), of x's type.
/// Throws ShapeError where shapes disagree, or where x is larger than one descriptor covers.
/// Source: Qwen1.5-MoE, https://qwenlm.github.io/blog/qwen-moe/ (the shared expert).
Tensor gate_rows(ProgramBuilder& builder, const Tensor& x, const Tensor& gates);
/// Scales in control, one set for each row of a batch.
struct RowScales {
  Tensor control;
  ControlArray<float> scales;  // (rows, per_row)
  uint32_t per_row = 1;
  uint32_t first = 0, count = 1;  // the scales of a row that are used
};
/// Multiplies column c of each token of x by its row's scale first + c % count. x: (..., C), the
/// tokens of each row together, in the order of rows. Throws ShapeError where rows and scales
/// disagree, or where x is larger than one descriptor covers.
Tensor scale_by_row(ProgramBuilder& builder, const Tensor& x, const RowScales& scales);
/// Multiplies interleaved gates with the gated values: activation(x[2 i]) * x[2 i + 1]. x: (..., 2
/// C); result: (..., C). This is the epilogue of MatmulOptions::gated; limit: ExpertOptions::limit.
Tensor gate_pairs(ProgramBuilder& builder, const Tensor& x, Activation activation, float limit = 0);
/// Returns a tensor whose elements are all `value`.
Tensor fill(ProgramBuilder& builder, Shape shape, float value, DataType type = DataType::kF32);
/// Converts x to another storage type (or copies it, if `to` is its own).
Tensor convert(ProgramBuilder& builder, const Tensor& x, DataType to);

}  // namespace mulciber
