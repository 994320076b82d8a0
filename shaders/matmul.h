// Parameters of the matmul family: y = activation(x W^T + bias) [+ y], or gated, with interleaved
// rows of W: y = activation(first) * second [+ y].
#ifndef MULCIBER_SHADERS_MATMUL_H
#define MULCIBER_SHADERS_MATMUL_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

SHADER_STRUCT(MatmulParams) {
  uint rows;          // M: rows of x and y in this dispatch
  uint columns;       // N: rows of W in this dispatch
  uint depth;         // K
  uint row_stride;    // elements from one row of y to the next
  uint first_column;  // column of y for the first column of this dispatch; gated, half as many
                      // follow
  uint first_bias;    // element of the bias for the first column
  // For W of several block types: the columns at which the second and third type begin, and the
  // words from the start of W to their first rows.
  uint second_column, second_at;
  uint third_column, third_at;
}
SHADER_STRUCT_END

// Sums the partial sums of a split-K product, (parts, rows, columns), into y.
SHADER_STRUCT(SplitKReduceParams) {
  uint rows;
  uint columns;  // columns of the product: rows of W
  uint parts;
  uint row_stride;  // this and the following: see MatmulParams
  uint first_column;
  uint first_bias;
}
SHADER_STRUCT_END

// For rows with f16 arithmetic: the number of neighbouring columns of K, from a multiple of it on,
// whose products are summed in f16 before they are added to a sum in f32.
#define HALF_SUM_DEPTH 16

#define MATMUL_ACTIVATION CONSTANT_OP        // a value of mulciber::Activation
#define MATMUL_BIAS (CONSTANT_OP + 1)        // 1: add buffer 2
#define MATMUL_ACCUMULATE (CONSTANT_OP + 2)  // 1: add to y
#define MATMUL_GATED (CONSTANT_OP + 4)       // 1: columns 2 i and 2 i + 1 make one of y
// Formats of the second and third block type of W, in addition to WEIGHT_FORMAT; 0: none.
#define MATMUL_SECOND_FORMAT (CONSTANT_OP + 16)
#define MATMUL_THIRD_FORMAT (CONSTANT_OP + 17)
// For rows that normalize x (op norm_matmul): the bits of the norm's f32 epsilon.
#define MATMUL_EPSILON (CONSTANT_OP + 18)
// For rows that can split K (matmul_epilogue.glsl): the part of K for each workgroup along z; 0:
// all of K. It is a multiple of 64, and results are partial sums.
#define MATMUL_SPLIT_DEPTH (CONSTANT_OP + 19)
// For rows on matrix units: the extents that are whole tiles, so that nothing need be checked
// there.
#define MATMUL_WHOLE (CONSTANT_OP + 20)
#define MATMUL_WHOLE_ROWS 1u
#define MATMUL_WHOLE_COLUMNS 2u
#define MATMUL_WHOLE_DEPTH 4u
// rows of y per workgroup, in kernels that leave it open
#define MATMUL_ROWS (CONSTANT_OP + 3)

#endif
