// Rows of block types, dequantized on the fly (layout: blocks.h). One module serves every type: its
// format is a specialization constant, so that what a type does not need is gone when the driver
// compiles.
//
// Before including it: BLOCKS_BUFFER is the index of the buffer, BLOCKS_COLUMNS the elements of a
// row. Thirty-two elements are a group; its quad t (0 to 7) is elements 4 t to 4 t + 3. `format` is
// a specialization constant wherever a function is called.
#ifndef MULCIBER_BLOCKS_GLSL
#define MULCIBER_BLOCKS_GLSL
#include "blocks.h"

layout(constant_id = WEIGHT_FORMAT) const uint FORMAT = 0;

BUFFER(BLOCKS_BUFFER, readonly, blocks, uint)
BUFFER(BLOCKS_BUFFER, readonly, wide_blocks, uvec4)

uint row_words(uint format) { return BLOCKS_ROW_WORDS(format, BLOCKS_COLUMNS); }

// Scale and minimum of the group's first and second half.
struct GroupScales {
  vec2 scale, minimum;
};

// row_at: the row's first word.
GroupScales group_scales(uint format, uint row_at, uint group) {
  GroupScales result;
  uint block_scales = row_at + BLOCKS_SCALES_AT(format, BLOCKS_COLUMNS);
  if (BLOCKS_SCALES(format) == BLOCKS_PAIR) {
    vec2 pair = unpackHalf2x16(AT(blocks, block_scales + group));
    result.scale = vec2(pair.x);
    result.minimum = vec2(pair.y);
    return result;
  }
  uint block_scale = AT(blocks, block_scales + group / 2) >> (group % 2 * 16) & 0xffffu;
  if (BLOCKS_SCALES(format) == BLOCKS_SCALE) {
    result.scale = vec2(unpackHalf2x16(block_scale).x);
    result.minimum = -float(BLOCKS_OFFSET(format)) * result.scale;
    return result;
  }
  uint super_scale =
      AT(blocks, row_at + BLOCKS_SUPER_SCALES_AT(format, BLOCKS_COLUMNS) + group / 8);
  if (BLOCKS_SCALES(format) == BLOCKS_SUB_PAIR) {
    vec2 pair = unpackHalf2x16(super_scale);
    result.scale = vec2(pair.x * float(block_scale & 255u));
    result.minimum = vec2(-pair.y * float(block_scale >> 8));
  } else {
    ivec2 bytes = ivec2(int(block_scale << 24) >> 24, int(block_scale << 16) >> 24);
    result.scale = uintBitsToFloat(super_scale) * vec2(bytes);
    result.minimum = -float(BLOCKS_OFFSET(format)) * result.scale;
  }
  return result;
}

// A group's high bits; at least one word, so that callers need not ask whether there are any.
uvec2 group_high(uint format, uint row_at, uint group) {
  if (BLOCKS_HIGH_BITS(format) == 0) return uvec2(0);
  uint at = row_at + BLOCKS_HIGH_AT(format, BLOCKS_COLUMNS) + group * BLOCKS_HIGH_BITS(format);
  return uvec2(AT(blocks, at), BLOCKS_HIGH_BITS(format) == 2 ? AT(blocks, at + 1) : 0u);
}

// Word s (0 to 3) of a group holds its quads s and s + 4. The integers of either quad as four
// bytes.
struct QuadPair {
  uint first, second;
};
// word, upper: word s of the group, and that four words on where integers are bytes.
QuadPair unpack_pair(uint format, uint word, uint upper, uint s, uvec2 high) {
  QuadPair result;
  if (BLOCKS_VALUE_BITS(format) == 8) {
    result.first = word;
    result.second = upper;
    return result;
  }
  result.first = word & 0x0f0f0f0fu;
  result.second = word >> 4 & 0x0f0f0f0fu;
  if (BLOCKS_HIGH_BITS(format) == 1) {
    result.first |= (high.x >> s & 0x01010101u) << 4;
    result.second |= (high.x >> s >> 4 & 0x01010101u) << 4;
  }
  if (BLOCKS_HIGH_BITS(format) == 2) {
    result.first |= (high.x >> 2 * s & 0x03030303u) << 4;
    result.second |= (high.y >> 2 * s & 0x03030303u) << 4;
  }
  return result;
}

QuadPair quad_pair(uint format, uint row_at, uint group, uint s, uvec2 high) {
  uint at = row_at + group * BLOCKS_VALUE_BITS(format) + s;
  return unpack_pair(format, AT(blocks, at),
                     BLOCKS_VALUE_BITS(format) == 8 ? AT(blocks, at + 4) : 0u, s, high);
}
// The same for all four words at once.
void quad_pairs(uint format, uint row_at, uint group, uvec2 high, out QuadPair pairs[4]) {
  uint at = (row_at + group * BLOCKS_VALUE_BITS(format)) / 4;
  uvec4 words = AT(wide_blocks, at);
  uvec4 upper = BLOCKS_VALUE_BITS(format) == 8 ? AT(wide_blocks, at + 1) : uvec4(0);
  [[unroll]] for (uint s = 0; s < 4; ++s) {
    pairs[s] = unpack_pair(format, words[s], upper[s], s, high);
  }
}

// The four bytes, the second and third one too large by 2^8 and 2^16: their scales are smaller by
// as much, which saves a shift for each. All of this is exact.
vec4 quad_quants(uint bytes) {
  return vec4(float(int(bytes & 0xffu)), float(int(bytes & 0xff00u)), float(int(bytes & 0xff0000u)),
              float(int(bytes >> 24)));
}
vec4 quad_scale(float scale) { return scale * vec4(1.0, 0.00390625, 0.0000152587890625, 1.0); }

// Four neighbours, for kernels that read quads wherever they lie.
vec4 block_quad(uint row, uint k) {
  uint row_at = row * row_words(FORMAT);
  uint group = k / 32, t = k / 4 % 8;
  GroupScales scales = group_scales(FORMAT, row_at, group);
  QuadPair pair = quad_pair(FORMAT, row_at, group, t % 4, group_high(FORMAT, row_at, group));
  bool second = t >= 4;
  return quad_quants(second ? pair.second : pair.first) *
             quad_scale(second ? scales.scale.y : scales.scale.x) +
         (second ? scales.minimum.y : scales.minimum.x);
}

// Eight neighbours, k being a multiple of eight.
void block_eight(uint row, uint k, out vec4 low, out vec4 high) {
  uint row_at = row * row_words(FORMAT);
  uint group = k / 32, t = k / 4 % 8;
  GroupScales scales = group_scales(FORMAT, row_at, group);
  uvec2 high_bits = group_high(FORMAT, row_at, group);
  QuadPair pair = quad_pair(FORMAT, row_at, group, t % 4, high_bits);
  QuadPair next = quad_pair(FORMAT, row_at, group, t % 4 + 1, high_bits);
  bool second = t >= 4;
  vec4 scale = quad_scale(second ? scales.scale.y : scales.scale.x);
  float minimum = second ? scales.minimum.y : scales.minimum.x;
  low = quad_quants(second ? pair.second : pair.first) * scale + minimum;
  high = quad_quants(second ? next.second : next.first) * scale + minimum;
}

#endif
