// Reorders the columns of a tensor.
#pragma once

#include "runtime/program.h"

namespace mulciber {

/// Returns y[row, i] = x[row, order[i]], bit by bit. x: (..., K) f32; order: (K) u32, each below K.
/// Throws
/// ShapeError naming the layer.
Tensor permute_columns(ProgramBuilder& builder, const Tensor& x, const Tensor& order);

}  // namespace mulciber
