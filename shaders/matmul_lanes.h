// What matmul_lanes.comp takes beside the constants of matmul.h.
#ifndef MULCIBER_SHADERS_MATMUL_LANES_H
#define MULCIBER_SHADERS_MATMUL_LANES_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// 1: four neighbouring columns of y begin at a multiple of 16 bytes, and where the last four are
// not whole, what follows them in the row of y may be overwritten.
#define MATMUL_STORE_QUADS (CONSTANT_OP + 21)

#endif
