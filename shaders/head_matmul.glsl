// Common parts of products per head: constants, parameters, and loads of four elements of a row of
// the weight in any type.
#ifndef MULCIBER_HEAD_MATMUL_GLSL
#define MULCIBER_HEAD_MATMUL_GLSL
#include "interface.h"
#include "head_matmul.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"
#include "types.glsl"

layout(constant_id = HEAD_MATMUL_TRANSPOSED) const uint TRANSPOSED = 0;
layout(constant_id = HEAD_MATMUL_ADD) const uint ADD = 0;

PARAMS(HeadMatmulParams)

#if defined(WEIGHT_BLOCKS)
#define BLOCKS_BUFFER 1
#define BLOCKS_COLUMNS params.weight_columns
#include "blocks.glsl"
vec4 weight_quad(uint row, uint k) { return block_quad(row, k); }
#elif defined(READ_VECTORS)
#ifdef WEIGHT_HALF
BUFFER(1, readonly, weight, uvec2)
vec4 unpack(uvec2 words) { return unpack_weight4(words); }
#else
BUFFER(1, readonly, weight, vec4)
vec4 unpack(vec4 values) { return values; }
#endif
vec4 weight_quad(uint row, uint k) {
  return unpack(AT(weight, (row * params.weight_columns + k) / 4));
}
#else
#ifdef WEIGHT_HALF
BUFFER(1, readonly, weight, uint)
float weight_at(uint i) { return unpack_weight2(AT(weight, i / 2))[i % 2]; }
#else
BUFFER(1, readonly, weight, float)
float weight_at(uint i) { return AT(weight, i); }
#endif
// Past the end of a row its last element repeats; it meets zeros of x or is not stored.
vec4 weight_quad(uint row, uint k) {
  const uint first = row * params.weight_columns, last = params.weight_columns - 1;
  return vec4(weight_at(first + k), weight_at(first + min(k + 1, last)),
              weight_at(first + min(k + 2, last)), weight_at(first + min(k + 3, last)));
}
#endif

#endif
