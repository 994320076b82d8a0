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
/// A tensor of that value throughout.
Tensor fill(ProgramBuilder& builder, Shape shape, float value, DataType type = DataType::kF32);
/// x in another storage type (or the same: a copy).
Tensor convert(ProgramBuilder& builder, const Tensor& x, DataType to);

}  // namespace mulciber
