// Products with the matrices of experts: parameters.
#ifndef MULCIBER_SHADERS_EXPERTS_H
#define MULCIBER_SHADERS_EXPERTS_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 x, 1 weight, 2 control (routes, then the bias), 3 y.
SHADER_STRUCT(ExpertParams) {
  uint rows;     // rows of y
  uint columns;  // columns of y
  uint depth;    // columns of x
  uint experts;
  uint experts_per_token;  // experts per token
  uint bias_offset;        // word of control, where EXPERT_BIAS is 1
  // The bound rows among all experts' rows, one below the other, where EXPERT_PART is 1.
  uint first_row;
  uint bound_rows;
}
SHADER_STRUCT_END

// 1: a token's results are summed, each times its gate
#define EXPERT_COMBINE CONSTANT_OP
// 1: a token's gates are divided by their sum
#define EXPERT_NORMALIZE (CONSTANT_OP + 1)
#define EXPERT_GATED (CONSTANT_OP + 2)       // 1: rows 2 i of a matrix gate rows 2 i + 1
#define EXPERT_ACTIVATION (CONSTANT_OP + 3)  // a value of mulciber::Activation
#define EXPERT_BIAS (CONSTANT_OP + 4)        // 1: there is a bias
// float, above 0: gates are at most this, values are clamped to +-this and increased by 1
#define EXPERT_LIMIT (CONSTANT_OP + 5)
#define EXPERT_PART (CONSTANT_OP + 6)  // 1: the weight is a part of the matrices; never combined

#endif
