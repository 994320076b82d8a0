// Products per head, each head with a matrix of its own: parameters.
#ifndef MULCIBER_SHADERS_HEAD_MATMUL_H
#define MULCIBER_SHADERS_HEAD_MATMUL_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 x, 1 weight, 2 y. Columns of head h begin at x_first + h * x_step in x and at y_first
// + h * y_step in y; its rows of the weight begin at weight_first + h * weight_step. Heads count
// from the first head of this dispatch.
SHADER_STRUCT(HeadMatmulParams) {
  uint rows;  // rows of x and y
  uint depth;
  uint columns;  // columns per head of y
  uint x_columns;
  uint x_first;
  uint x_step;
  uint y_columns;
  uint y_first;
  uint y_step;
  uint weight_columns;
  uint weight_first;
  uint weight_step;
}
SHADER_STRUCT_END

// 1: a row of the weight belongs to an element of x, 0: to a column of y
#define HEAD_MATMUL_TRANSPOSED (CONSTANT_OP + 0)
#define HEAD_MATMUL_ADD (CONSTANT_OP + 1)  // 1: add to y

#endif
