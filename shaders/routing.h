// Parameters for the choice of experts.
#ifndef MULCIBER_SHADERS_ROUTING_H
#define MULCIBER_SHADERS_ROUTING_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 logits, 1 bias, 2 routes.
SHADER_STRUCT(RouteParams) {
  uint tokens;
  uint experts;
  uint experts_per_token;
  uint groups;       // groups of equal size
  uint groups_used;  // groups from which experts are chosen
  float scale;       // factor of the gates
}
SHADER_STRUCT_END

#define ROUTE_SIGMOID CONSTANT_OP          // 1: scores are sigmoids of logits, 0: their softmax
#define ROUTE_BIAS (CONSTANT_OP + 1)       // 1: a bias is added to scores for the choice
#define ROUTE_TWO_BEST (CONSTANT_OP + 2)   // 1: a group counts by its two best, 0: by its best
#define ROUTE_NORMALIZE (CONSTANT_OP + 3)  // 1: a token's gates add up to the scale
#define ROUTE_MOST_GROUPS 32

#endif
