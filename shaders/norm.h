// Layer norm, root-mean-square norm and softmax: their parameters.
#ifndef MULCIBER_SHADERS_NORM_H
#define MULCIBER_SHADERS_NORM_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Specialization constants of layer norm.
#define NORM_RESIDUAL (CONSTANT_OP + 0)  // 1: the residual is added to x
#define NORM_COLUMNS (CONSTANT_OP + 1)   // set for rows that keep a line in registers

// Specialization constant of the root-mean-square norm.
#define RMS_STREAM (CONSTANT_OP + 0)  // RMS_*
#define RMS_PLAIN 0                   // y = norm(x)
#define RMS_ADD 1                     // stream += x, y = norm(stream)
// stream += norm(x) with the first gain, y = norm(stream)
#define RMS_ADD_NORM 2

// Specialization constant of the norm of columns.
#define COLUMNS_CENTERED (CONSTANT_OP + 0)  // 1: layer norm without a bias; 0: root mean square

// Specialization constants of softmax.
#define SOFTMAX_LOGARITHM (CONSTANT_OP + 0)  // 1: log-softmax
// 1: control has the number of columns that a row sees
#define SOFTMAX_COUNTS (CONSTANT_OP + 1)
#define SOFTMAX_CAUSAL (CONSTANT_OP + 2)  // causal_period, 0: none

SHADER_STRUCT(LayerNormParams) {
  uint rows;
  uint columns;
  float epsilon;
}
SHADER_STRUCT_END

// gain: row of the gains for the last norm.
SHADER_STRUCT(RmsNormParams) {
  uint rows;
  uint columns;
  uint gain;
  float epsilon;
}
SHADER_STRUCT_END

// A row of x has row_stride elements; the groups, of `columns` each, begin with first_column.
SHADER_STRUCT(NormColumnsParams) {
  uint row_stride;
  uint first_column;
  uint columns;
  float epsilon;
}
SHADER_STRUCT_END

// first_row: index of the buffer's row 0 in the whole tensor. counts: word of control.
SHADER_STRUCT(SoftmaxParams) {
  uint columns;
  uint first_row;
  uint counts;
  uint rows_per_count;
  float scale;
}
SHADER_STRUCT_END

#endif
