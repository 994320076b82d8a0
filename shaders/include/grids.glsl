// Rows of ggml's IQ2 and IQ3 (layout: grids.h), under the names by which blocks.glsl uses them.
// Their grid is in shared memory, because compilers make slow code of large constant arrays: a
// kernel calls fill_grid() before it reads a weight.
#ifndef MULCIBER_GRIDS_GLSL
#define MULCIBER_GRIDS_GLSL
#include "grids.h"
#include "grid_tables.h"

shared uint grid[512];  // 1,024 entries at most

// Arrays with initial values, not constant ones, which glslang would write anew at every read; and
// small ones, which drivers that keep them in memory compile faster.
#define COPY_WORDS(AT, WORDS)                                         \
  {                                                                   \
    uint words[64] = uint[](WORDS);                                   \
    for (uint i = gl_LocalInvocationIndex; i < 64; i += LOCAL_SIZE) { \
      grid[AT + i] = words[i];                                        \
    }                                                                 \
  }

void fill_grid() {
  if (FORMAT == GRID_IQ2_XXS) {
    GRID_IQ2_XXS_PARTS(COPY_WORDS)
  } else if (FORMAT == GRID_IQ2_XS) {
    GRID_IQ2_XS_PARTS(COPY_WORDS)
  } else if (FORMAT == GRID_IQ2_S) {
    GRID_IQ2_S_PARTS(COPY_WORDS)
  } else if (FORMAT == GRID_IQ3_XXS) {
    GRID_IQ3_XXS_PARTS(COPY_WORDS)
  } else {
    GRID_IQ3_S_PARTS(COPY_WORDS)
  }
  barrier();
}

uint row_words(uint format) { return GRID_ROW_WORDS(format, BLOCKS_COLUMNS); }

uint grid_signs(uint format, uint row_at, uint group) {
  return AT(blocks, row_at + GRID_SIGNS_AT(format, BLOCKS_COLUMNS) + group);
}
uint grid_block_scales(uint format, uint row_at, uint group) {
  uint per_word = format == GRID_IQ2_XS ? 4 : 2;
  uint word = AT(blocks, row_at + GRID_SCALES_AT(format, BLOCKS_COLUMNS) + group / per_word);
  return word >> group % per_word * (32 / per_word);
}

GroupScales group_scales(uint format, uint row_at, uint group) {
  float super_scale = uintBitsToFloat(
      AT(blocks, row_at + GRID_SUPER_SCALES_AT(format, BLOCKS_COLUMNS) + group / 8));
  uvec2 block_scale;
  if (GRID_SCALE_BITS(format) != 0) {
    uint nibbles = grid_block_scales(format, row_at, group);
    block_scale = uvec2(nibbles, nibbles >> 4) & 15u;
  } else {
    block_scale = uvec2(grid_signs(format, row_at, group) >> 28);
  }
  GroupScales result;
  result.scale = super_scale * vec2(2 * block_scale + 1);
  result.minimum = vec2(0);
  return result;
}

// Signs of a group's elements, and the higher bits of its entries' numbers.
uvec2 group_high(uint format, uint row_at, uint group) {
  uint word = grid_signs(format, row_at, group);
  if (!GRID_PACKS_SIGNS(format)) {
    return uvec2(word, grid_block_scales(format, row_at, group) >> 8);
  }
  uint signs =
      (word & 0x7fu) | (word & 0x3f80u) << 1 | (word & 0x1fc000u) << 2 | (word & 0x0fe00000u) << 3;
  uint parity = signs ^ signs >> 4;
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  signs |= (parity & 0x01010101u) << 7;
  uint ninth = format == GRID_IQ2_XS ? word >> 28 : 0;
  ninth = (ninth | ninth << 2) & 0x33u;
  return uvec2(signs, (ninth | ninth << 1) & 0x55u);
}

// The magnitudes of the first or last four elements of an entry as bytes.
uint grid_magnitudes(uint format, uint index, uint half_of_it) {
  uint entry = grid[index / 2] >> index % 2 * 16;
  if (GRID_LENGTH(format) == 8) {
    uint codes = entry >> half_of_it * 8 & 0xffu;
    codes = (codes | codes << 12) & 0x000f000fu;
    codes = (codes | codes << 6) & 0x03030303u;
    return codes * 17 + 0x08080808u + (codes >> 1 & 0x01010101u);  // 8, 25, 43
  }
  uint codes = entry & 0xfffu;
  codes = (codes | codes << 10) & 0x003f003fu;
  codes = (codes | codes << 5) & 0x07070707u;
  if (format == GRID_IQ3_S) return codes * 2 + 0x01010101u;  // 1, 3, 5, ... 15
  uint last = codes & codes >> 1 & codes >> 2 & 0x01010101u;
  return codes * 8 + 0x04040404u + last * 2;  // 4, 12, 20, ... 52, 62
}

// signs: those of the quad, in the lowest four bits. No magnitude is zero, so no byte carries.
uint with_signs(uint magnitudes, uint signs) {
  uint negative = (signs & 15u) * 0x00204081u & 0x01010101u;
  return (magnitudes ^ negative * 255) + negative;
}

// Quads s and s + 4 of a group as signed bytes. words: its indices.
QuadPair unpack_pair(uint format, uvec2 words, uint s, uvec2 high) {
  uvec2 index, half_of_it = uvec2(0);
  if (GRID_LENGTH(format) == 8) {
    uint entry = s / 2;
    index = uvec2(words.x >> entry * 8, words.x >> entry * 8 + 16) & 0xffu;
    index |= (uvec2(high.y >> entry * 2, high.y >> entry * 2 + 4) & 3u) << 8;
    half_of_it = uvec2(s % 2);
  } else {
    index = (words >> s * 8 & 0xffu) | (uvec2(high.y >> s, high.y >> s + 4) & 1u) << 8;
  }
  QuadPair result;
  result.first = with_signs(grid_magnitudes(format, index.x, half_of_it.x), high.x >> s * 4);
  result.second = with_signs(grid_magnitudes(format, index.y, half_of_it.y), high.x >> s * 4 + 16);
  return result;
}

uvec2 group_indices(uint format, uint row_at, uint group) {
  uint at = row_at + group * GRID_INDEX_WORDS(format);
  return uvec2(AT(blocks, at), GRID_INDEX_WORDS(format) == 2 ? AT(blocks, at + 1) : 0u);
}
QuadPair quad_pair(uint format, uint row_at, uint group, uint s, uvec2 high) {
  return unpack_pair(format, group_indices(format, row_at, group), s, high);
}
void quad_pairs(uint format, uint row_at, uint group, uvec2 high, out QuadPair pairs[4]) {
  uvec2 words = group_indices(format, row_at, group);
  [[unroll]] for (uint s = 0; s < 4; ++s) pairs[s] = unpack_pair(format, words, s, high);
}

// The four bytes as the upper ones of words, larger by 2^24: their scale is smaller by the same
// factor. This is exact.
vec4 quad_quants(uint format, uint bytes) {
  return vec4(ivec4(uvec4(bytes << 24, bytes << 16, bytes << 8, bytes) & 0xff000000u));
}
vec4 quad_scale(float scale) { return vec4(scale * 5.9604644775390625e-8); }

#endif
