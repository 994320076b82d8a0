// Common operands of all matmul kernels, and their epilogue (matmul_epilogue.glsl). x, W and y are
// row-major; quads are four neighbours along K. A row of kernels.def may define
//   DEPTH_BY_4   K is a multiple of 4, so a quad is one aligned load (always the case with blocks)
//   X_TEXELS     x, in f32, is read through a texel buffer
//   W_TEXELS     W, in f32 or halves, likewise: only as TEXEL(w, i)
//   NORMALIZED   x, one row of f32, is used as rms_norm(x); the gains replace the bias
#ifndef MULCIBER_MATMUL_OPERANDS_GLSL
#define MULCIBER_MATMUL_OPERANDS_GLSL

#define BUFFER_COUNT 4
#include "buffers.glsl"

PARAMS(MatmulParams)

#define BIAS_BUFFER 2
#define Y_BUFFER 3
#ifdef NORMALIZED
#include "norm_factor.glsl"
#endif
#include "matmul_epilogue.glsl"

#ifdef ACTIVATION_Q8_1
#include "blocks.h"
#endif

// f16 operands are read as 32-bit words, which needs no feature. Rows of an odd K begin inside a
// word.
#if defined(DEPTH_BY_4) || defined(WEIGHT_BLOCKS)

#ifdef ACTIVATION_F16
BUFFER(0, readonly, x, uvec2)
vec4 x_quad(uint row, uint k) { return unpack_half4(AT(x, (row * params.depth + k) / 4)); }
#elif defined(ACTIVATION_Q8_1)
BUFFER(0, readonly, x_values, uvec4)
BUFFER(0, readonly, x_scales, uvec2)
/// The integers of half a block, and a block's scale with the sums of its integers.
uvec4 x_integers(uint row, uint group, uint half_of_it) {
  return AT(x_values, row * (Q8_1_ROW_WORDS(params.depth) / 4) + group * 2 + half_of_it);
}
uvec2 x_scale(uint row, uint group) {
  return AT(x_scales,
            (row * Q8_1_ROW_WORDS(params.depth) + Q8_1_SCALES_AT(params.depth)) / 2 + group);
}
#elif defined(X_TEXELS)
TEXELS(0, x)
vec4 x_quad(uint row, uint k) { return uintBitsToFloat(TEXEL(x, (row * params.depth + k) / 4)); }
#else
BUFFER(0, readonly, x, vec4)
#ifdef NORMALIZED
vec4 x_quad(uint row, uint k) { return AT(x, k / 4) * norm_factor * AT(gain_quads, k / 4); }
#else
vec4 x_quad(uint row, uint k) { return AT(x, (row * params.depth + k) / 4); }
#endif
#endif

#if defined(WEIGHT_BLOCKS)
#define BLOCKS_BUFFER 1
#define BLOCKS_COLUMNS params.depth
#include "blocks.glsl"
vec4 w_quad(uint row, uint k) { return block_quad(row, k); }
#ifdef ACTIVATION_Q8_1
#include "integer_dot.glsl"
#endif
#elif defined(W_TEXELS)
TEXELS(1, w)
#elif defined(WEIGHT_HALF)
BUFFER(1, readonly, w, uvec2)
vec4 w_quad(uint row, uint k) { return unpack_weight4(AT(w, (row * params.depth + k) / 4)); }
#else
BUFFER(1, readonly, w, vec4)
vec4 w_quad(uint row, uint k) { return AT(w, (row * params.depth + k) / 4); }
#endif

#else

#ifdef ACTIVATION_F16
BUFFER(0, readonly, x, uint)
float x_element(uint at) { return unpackHalf2x16(AT(x, at / 2))[at % 2]; }
#else
BUFFER(0, readonly, x, float)
#ifdef NORMALIZED
float x_element(uint at) { return AT(x, at) * norm_factor * AT(gains, at); }
#else
float x_element(uint at) { return AT(x, at); }
#endif
#endif

#ifdef WEIGHT_HALF
BUFFER(1, readonly, w, uint)
float w_element(uint at) { return unpack_weight2(AT(w, at / 2))[at % 2]; }
#else
BUFFER(1, readonly, w, float)
float w_element(uint at) { return AT(w, at); }
#endif

#define QUAD(NAME)                                                                    \
  vec4 NAME##_quad(uint row, uint k) {                                                \
    uint at = row * params.depth + k;                                                 \
    if (k + 4 <= params.depth) {                                                      \
      return vec4(NAME##_element(at), NAME##_element(at + 1), NAME##_element(at + 2), \
                  NAME##_element(at + 3));                                            \
    }                                                                                 \
    vec4 quad = vec4(NAME##_element(at), 0, 0, 0);                                    \
    if (k + 1 < params.depth) quad.y = NAME##_element(at + 1);                        \
    if (k + 2 < params.depth) quad.z = NAME##_element(at + 2);                        \
    return quad;                                                                      \
  }
QUAD(x)
QUAD(w)
#undef QUAD

#endif

#endif
