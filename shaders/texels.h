// Parameters of packing numbers into texels of images.
#ifndef MULCIBER_SHADERS_TEXELS_H
#define MULCIBER_SHADERS_TEXELS_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 x, floats; 1 y, words.
SHADER_STRUCT(PackTexelsParams) {
  uint count;   // of x
  uint words;   // of y
  uint stride;  // invocations of the dispatch, each taking every stride-th word
}
SHADER_STRUCT_END

#define TEXELS_FORMAT CONSTANT_OP
// Its values: what stands in a word, the first in the lowest bits.
#define TEXELS_UNORM8 0   // four numbers of 8 bits
#define TEXELS_UNORM16 1  // two of 16
#define TEXELS_GREY8 2    // one, three times, and 255: a grey that is opaque

#endif
