// Pointwise operations: sums, activations, copies and conversions between storage types.
#pragma once

#include "ops/matmul.h"

namespace mulciber {

/// a + b, same shape and type.
Tensor add(ProgramBuilder& builder, const Tensor& a, const Tensor& b);
/// activation(x).
Tensor activate(ProgramBuilder& builder, const Tensor& x, Activation activation);
/// A tensor of that value throughout.
Tensor fill(ProgramBuilder& builder, Shape shape, float value, DataType type = DataType::kF32);
/// x in another storage type (or the same: a copy).
Tensor convert(ProgramBuilder& builder, const Tensor& x, DataType to);

}  // namespace mulciber
