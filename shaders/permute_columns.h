// Parameters of permute_columns.comp.
#ifndef MULCIBER_SHADERS_PERMUTE_COLUMNS_H
#define MULCIBER_SHADERS_PERMUTE_COLUMNS_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 x (rows, columns), 1 order (columns), 2 y (rows, columns).
SHADER_STRUCT(PermuteColumnsParams) {
  uint count;  // elements of y
  uint columns;
}
SHADER_STRUCT_END

#endif
