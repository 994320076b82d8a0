// Storage types of a kernel: the row of kernels.def says ACTIVATION and WEIGHT (F32, F16, HALF,
// BLOCKS or GRIDS), the code says activation and weight. Arithmetic is always 32-bit float.
#ifndef MULCIBER_TYPES_GLSL
#define MULCIBER_TYPES_GLSL

#if defined(ACTIVATION_F16) || defined(WEIGHT_SCALAR_F16)
#extension GL_EXT_shader_16bit_storage : require
#endif

#ifdef ACTIVATION_F16
#define activation float16_t
#define activation4 f16vec4
#else
#define activation float
#define activation4 vec4
#endif

// f16 operands are read as 32-bit words (two halves each), which needs no 16-bit feature of the
// device.
vec4 unpack_half4(uvec2 word) { return vec4(unpackHalf2x16(word.x), unpackHalf2x16(word.y)); }

#ifdef WEIGHT_HALF
#include "blocks.h"
// Weights in f16, or in bf16 where the format is 1: the upper half of an f32.
layout(constant_id = WEIGHT_FORMAT) const uint FORMAT = 0;
vec2 unpack_weight2(uint word) {
  if (FORMAT == 1) return vec2(uintBitsToFloat(word << 16), uintBitsToFloat(word & 0xffff0000u));
  return unpackHalf2x16(word);
}
vec4 unpack_weight4(uvec2 words) { return vec4(unpack_weight2(words.x), unpack_weight2(words.y)); }
#endif

#endif
