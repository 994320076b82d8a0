// Parameters for copying columns.
#ifndef MULCIBER_SHADERS_COPY_H
#define MULCIBER_SHADERS_COPY_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 x, 1 y, both as 32-bit words; all parameters count words.
SHADER_STRUCT(CopyColumnsParams) {
  uint count;     // words to copy
  uint columns;   // columns of a row to copy
  uint x_stride;  // from row to row; 0: one row for all
  uint x_first;
  uint y_stride;
  uint y_first;
  uint blocks;  // number of such blocks of columns in a row
  uint x_step;  // from block to block of a row
  uint y_step;
}
SHADER_STRUCT_END

#endif
