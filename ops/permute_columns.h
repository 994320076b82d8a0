// Columns of a tensor in another order.
#pragma once

#include "runtime/program.h"

namespace mulciber {

/// y[row, i] = x[row, order[i]], bit by bit. x: (..., K) f32; order: (K) u32, each below K. Throws
/// ShapeError naming the layer.
Tensor permute_columns(ProgramBuilder& builder, const Tensor& x, const Tensor& order);

}  // namespace mulciber
