// Patches of images: parameters for unfolding them.
#ifndef MULCIBER_SHADERS_PATCHES_H
#define MULCIBER_SHADERS_PATCHES_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Specialization constants.
#define PATCHES_SIZE (CONSTANT_OP + 0)      // pixels of a patch's side
#define PATCHES_CHANNELS (CONSTANT_OP + 1)  // per pixel, at most 4
#define PATCHES_BYTES (CONSTANT_OP + 2)     // 1: a pixel is a word whose bytes are its channels

SHADER_STRUCT(UnfoldPatchesParams) {
  uint elements;   // elements of y
  uint rows;       // rows of y for each image
  uint zero_rows;  // the first rows of these
  uint width;      // pixels of an image's row
  uint height;
  float scale_0;  // channel 0: factor of a pixel
  float scale_1;
  float scale_2;
  float scale_3;
  float shift_0;  // channel 0: addend
  float shift_1;
  float shift_2;
  float shift_3;
}
SHADER_STRUCT_END

#endif
