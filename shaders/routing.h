// The choice of experts: parameters.
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
  uint groups;       // of as many experts each
  uint groups_used;  // of which experts are chosen
  float scale;       // onto gates
}
SHADER_STRUCT_END

#define ROUTE_SIGMOID CONSTANT_OP          // 1: scores are sigmoids of logits, 0: their softmax
#define ROUTE_BIAS (CONSTANT_OP + 1)       // 1: what is chosen by has a bias added
#define ROUTE_TWO_BEST (CONSTANT_OP + 2)   // 1: a group counts its two best, 0: its best
#define ROUTE_NORMALIZE (CONSTANT_OP + 3)  // 1: gates of a token add up to the scale
#define ROUTE_MOST_GROUPS 32

#endif
