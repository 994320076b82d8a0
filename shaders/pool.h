// Parameters for pooling the states of a text.
#ifndef MULCIBER_SHADERS_POOL_H
#define MULCIBER_SHADERS_POOL_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Specialization constants.
#define POOL_MODE (CONSTANT_OP + 0)

#define POOL_MEAN 0
#define POOL_ROOT 1      // the sum over the square root of the count
#define POOL_WEIGHTED 2  // the mean, position i (from 1) counting i times
#define POOL_MAX 3
#define POOL_LAST 4

SHADER_STRUCT(PoolParams) {
  uint elements;   // elements of y
  uint positions;  // positions of a row of x
  uint columns;
  uint counts;  // word of control: number of row 0's positions that count
}
SHADER_STRUCT_END

#endif
