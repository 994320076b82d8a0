// Products with the matrices of experts: parameters.
#ifndef MULCIBER_SHADERS_EXPERTS_H
#define MULCIBER_SHADERS_EXPERTS_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 x, 1 weight, 2 control (routes, then the bias), 3 y.
SHADER_STRUCT(ExpertParams) {
  uint rows;     // of y
  uint columns;  // of y
  uint depth;    // columns of x
  uint experts;
  uint experts_per_token;  // experts that a token is sent to
  uint bias_offset;        // word of control, where EXPERT_BIAS is 1
  // Of all experts' rows, one below the other, those that are bound, where EXPERT_PART is 1.
  uint first_row;
  uint bound_rows;
}
SHADER_STRUCT_END

// 1: a token's results are added up, each times its gate
#define EXPERT_COMBINE CONSTANT_OP
// 1: the gates of a token are divided by their sum
#define EXPERT_NORMALIZE (CONSTANT_OP + 1)
#define EXPERT_GATED (CONSTANT_OP + 2)       // 1: rows 2 i of a matrix gate rows 2 i + 1
#define EXPERT_ACTIVATION (CONSTANT_OP + 3)  // a value of mulciber::Activation
#define EXPERT_BIAS (CONSTANT_OP + 4)        // 1: there is a bias
// float, above 0: gates are at most that, what they gate no further from 0, and 1 more
#define EXPERT_LIMIT (CONSTANT_OP + 5)
#define EXPERT_PART (CONSTANT_OP + 6)  // 1: the weight is a part of the matrices; not combined

#endif
