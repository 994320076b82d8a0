// Pointwise operations: sums, activations, copies and conversions between storage types.
#pragma once

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
/// A tensor of that value throughout.
Tensor fill(ProgramBuilder& builder, Shape shape, float value, DataType type = DataType::kF32);
/// x in another storage type (or the same: a copy).
Tensor convert(ProgramBuilder& builder, const Tensor& x, DataType to);

}  // namespace mulciber
