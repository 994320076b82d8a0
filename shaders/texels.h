// Parameters for packing numbers into texels of images.
#ifndef MULCIBER_SHADERS_TEXELS_H
#define MULCIBER_SHADERS_TEXELS_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Buffers: 0 x, floats; 1 y, words.
SHADER_STRUCT(PackTexelsParams) {
  uint count;   // numbers in x
  uint words;   // words in y
  uint stride;  // invocations of the dispatch, each taking every stride-th word
}
SHADER_STRUCT_END

#define TEXELS_FORMAT CONSTANT_OP
// Values of the format: the content of a word, first number in the lowest bits.
#define TEXELS_UNORM8 0   // four numbers of 8 bits
#define TEXELS_UNORM16 1  // two numbers of 16 bits
#define TEXELS_GREY8 2    // one number three times, then 255: opaque grey

#endif
