// What stands for a whole text: the parameters of pooling its states.
#ifndef MULCIBER_SHADERS_POOL_H
#define MULCIBER_SHADERS_POOL_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Specialization constants.
#define POOL_MODE (CONSTANT_OP + 0)

#define POOL_MEAN 0
#define POOL_ROOT 1      // the sum over the square root of the number
#define POOL_WEIGHTED 2  // the mean, position i (from 1) counting i times
#define POOL_MAX 3
#define POOL_LAST 4

SHADER_STRUCT(PoolParams) {
  uint elements;   // of y
  uint positions;  // of a row of x
  uint columns;
  uint counts;  // word of control: how many positions of row 0 count
}
SHADER_STRUCT_END

#endif
