// Parameters for quantizing activations: rows of f32 to blocks of 8-bit integers (q8_1, blocks.h).
#ifndef MULCIBER_SHADERS_QUANTIZE_H
#define MULCIBER_SHADERS_QUANTIZE_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

SHADER_STRUCT(QuantizeParams) {
  uint columns;
  uint blocks;  // blocks of all rows
}
SHADER_STRUCT_END

#endif
