// Constants of matmul_lanes.comp in addition to those of matmul.h.
#ifndef MULCIBER_SHADERS_MATMUL_LANES_H
#define MULCIBER_SHADERS_MATMUL_LANES_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// 1: four neighbouring columns of y begin at a multiple of 16 bytes, and if the last four are
// incomplete, the columns after them in the row of y may be overwritten.
#define MATMUL_STORE_QUADS (CONSTANT_OP + 21)

#endif
