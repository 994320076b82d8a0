// Pointwise operations: sums, activations, copies and conversions between storage types.
#pragma once

#include "ops/control.h"
#include "ops/matmul.h"

namespace mulciber {

/// a + b, same shape and type.
Tensor add(ProgramBuilder& builder, const Tensor& a, const Tensor& b);
/// activation(x).
Tensor activate(ProgramBuilder& builder, const Tensor& x, Activation activation);
/// scale * x, or with a cap above 0: cap * tanh(scale * x / cap), which is x where that is small
/// and never passes the cap. Source: Gemma Team 2024, arXiv:2408.00118, section 2.
Tensor scale_and_cap(ProgramBuilder& builder, const Tensor& x, float scale, float cap);
/// x, no further from 0 than `limit`, which is above 0.
Tensor clip(ProgramBuilder& builder, const Tensor& x, float limit);
/// Each row of x times sigmoid of its gate. x: (..., C); gates: (..., 1), of x's type.
/// Throws ShapeError where they do not fit, or where x passes what one descriptor covers.
/// Source: Qwen1.5-MoE, https://qwenlm.github.io/blog/qwen-moe/ (the shared expert).
Tensor gate_rows(ProgramBuilder& builder, const Tensor& x, const Tensor& gates);
/// Scales in control, of each row of a batch its own.
struct RowScales {
  Tensor control;
  ControlArray<float> scales;  // (rows, per_row)
  uint32_t per_row = 1;
  uint32_t first = 0, count = 1;  // of a row's those that are used, in turns
};
/// Number c of each token of x times its row's scale first + c % count. x: (..., C), tokens of one
/// row after those of another. Throws ShapeError where rows and scales do not fit, or where x
/// passes what one descriptor covers.
Tensor scale_by_row(ProgramBuilder& builder, const Tensor& x, const RowScales& scales);
/// Gates and what they gate, in turns: activation(x[2 i]) * x[2 i + 1]. x: (..., 2 C); result:
/// (..., C). As a product with MatmulOptions::gated ends; limit: ExpertOptions::limit.
Tensor gate_pairs(ProgramBuilder& builder, const Tensor& x, Activation activation, float limit = 0);
/// A tensor of that value throughout.
Tensor fill(ProgramBuilder& builder, Shape shape, float value, DataType type = DataType::kF32);
/// x in another storage type (or the same: a copy).
Tensor convert(ProgramBuilder& builder, const Tensor& x, DataType to);

}  // namespace mulciber
