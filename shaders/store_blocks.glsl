// Writes q8_0: 32 columns of a position of the cache become 32 bytes and an f16 scale, the largest
// magnitude over 127 (ggml, https://github.com/ggml-org/ggml, quantize_row_q8_0). Layout: blocks.h;
// attention_common.glsl reads it. Before including it: CACHE_BUFFER is the index of the cache.
#ifndef MULCIBER_STORE_BLOCKS_GLSL
#define MULCIBER_STORE_BLOCKS_GLSL
#include "blocks.h"

BUFFER(CACHE_BUFFER, restrict, cache, uint)

/// Words from the start of the cache to a position with `columns` columns.
uint position_words(uint position, uint columns) {
  return position * BLOCKS_ROW_WORDS(BLOCKS_Q8_0, columns);
}

/// Quantizes a block of 32 columns: words of four numbers, and the bits of its f16 scale.
uint block_words(vec4 quads[8], out uint words[8]) {
  vec4 sizes = abs(quads[0]);
  [[unroll]] for (uint i = 1; i < 8; ++i) sizes = max(sizes, abs(quads[i]));
  float scale = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)) / 127.0;
  float inverse = scale > 0.0 ? 1.0 / scale : 0.0;
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    // Halves are rounded away from zero, like in C's roundf().
    vec4 scaled = quads[i] * inverse;
    uvec4 numbers =
        uvec4(ivec4(trunc(scaled + sign(scaled) * 0.5)) + int(BLOCKS_OFFSET(BLOCKS_Q8_0))) & 255u;
    words[i] = numbers.x | numbers.y << 8 | numbers.z << 16 | numbers.w << 24;
  }
  return packHalf2x16(vec2(scale, 0.0)) & 0xffffu;
}

/// at: the first word of the position, which has `columns` columns.
void put_block(uint at, uint columns, uint block, uint words[8], uint scale) {
  [[unroll]] for (uint i = 0; i < 8; ++i) AT(cache, at + block * 8u + i) = words[i];
  // The other half of the word belongs to another invocation.
  uint entry = at + BLOCKS_SCALES_AT(BLOCKS_Q8_0, columns) + block / 2u, shift = block % 2u * 16u;
  atomicAnd(AT(cache, entry), ~(0xffffu << shift));
  atomicOr(AT(cache, entry), scale << shift);
}

/// Quantizes a block and stores it like put_block(); quads: the block's columns.
void store_block(uint at, uint columns, uint block, vec4 quads[8]) {
  uint words[8];
  uint scale = block_words(quads, words);
  put_block(at, columns, block, words, scale);
}

#endif
