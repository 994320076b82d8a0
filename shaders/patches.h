// Patches of pictures: the parameters of unfolding them.
#ifndef MULCIBER_SHADERS_PATCHES_H
#define MULCIBER_SHADERS_PATCHES_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Specialization constants.
#define PATCHES_SIZE (CONSTANT_OP + 0)      // pixels of a patch's side
#define PATCHES_CHANNELS (CONSTANT_OP + 1)  // of a pixel, at most 4
#define PATCHES_BYTES (CONSTANT_OP + 2)     // 1: a pixel is a word, its channels the bytes of it

SHADER_STRUCT(UnfoldPatchesParams) {
  uint elements;   // of y
  uint rows;       // of y, of each picture
  uint zero_rows;  // the first of them
  uint width;      // of a picture, in pixels
  uint height;
  float scale_0;  // of channel 0: what a pixel is multiplied by
  float scale_1;
  float scale_2;
  float scale_3;
  float shift_0;  // what is added then
  float shift_1;
  float shift_2;
  float shift_3;
}
SHADER_STRUCT_END

#endif
