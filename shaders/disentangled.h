// Disentangled attention: parameters of its scores by distance.
#ifndef MULCIBER_SHADERS_DISENTANGLED_H
#define MULCIBER_SHADERS_DISENTANGLED_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Specialization constants.
#define DISENTANGLED_SIZE (CONSTANT_OP + 0)   // columns of a head
#define DISENTANGLED_TERMS (CONSTANT_OP + 1)  // bit 0: content to position; bit 1: the reverse

SHADER_STRUCT(DisentangledParams) {
  uint pairs;  // pairs of queries and keys, over all rows and heads
  uint rows;
  uint heads;
  uint positions;  // positions of a row
  uint columns;    // columns of a row of qkv
  uint distances;  // rows of the table of distances
  uint distance_columns;
  uint row_of;  // word of control: the row for the distance 1 - length
  uint counts;  // word of control: positions of row 0 that count
  float scale;
}
SHADER_STRUCT_END

#endif
