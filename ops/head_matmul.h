// Products per head, each head with a matrix of its own.
#pragma once

#include "runtime/program.h"

namespace mulciber {

struct HeadMatmulOptions {
  uint32_t heads = 1;
  uint32_t depth = 0, columns = 0;  // K and N of each head
  /// First of these columns of head 0 in x and in y, and the distance to the next head's.
  uint32_t x_first = 0, x_step = 0, y_first = 0, y_step = 0;
  /// First row and distance of rows of the weight; step 0: one matrix for all heads.
  uint32_t weight_first = 0, weight_step = 0;
  /// False: rows of the weight belong to columns of y, y = x W^T; true: to elements of x, y = x W.
  bool transposed = false;
  bool add = false;  // add to y instead of overwriting it
};

/// y[r, y_first + h y_step + n] = sum over k of x[r, x_first + h x_step + k] W[h][n, k], transposed
/// W[h][k, n], with W[h] the rows of the weight from weight_first + h weight_step on.
/// x, y: (..., columns) f32 or f16, with equal numbers of rows; weight: (rows, K), transposed
/// (rows, N), f32, f16, bf16 or a block type (x in f32, whole blocks in a row). Columns of y that
/// belong to no head stay as they are. Sums in f32. 16-bit sizes, strides and offsets are even. A
/// weight larger than the device's storage range takes several nodes, each with some of the heads.
/// Throws ShapeError naming the layer.
void head_matmul(ProgramBuilder& builder, const Tensor& x, const Tensor& weight, const Tensor& y,
                 const HeadMatmulOptions& options);

}  // namespace mulciber
