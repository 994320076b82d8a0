// Rows of block types, dequantized when read (layout: blocks.h). One module serves every type: the
// format is a specialization constant, so that the driver removes code that a type does not need.
//
// Before including it: BLOCKS_BUFFER is the index of the buffer, BLOCKS_COLUMNS the elements of a
// row. Thirty-two elements are a group; its quad t (0 to 7) is elements 4 t to 4 t + 3. `format` is
// a specialization constant wherever a function is called.
#ifndef MULCIBER_BLOCKS_GLSL
#define MULCIBER_BLOCKS_GLSL
#include "blocks.h"

layout(constant_id = WEIGHT_FORMAT) const uint FORMAT = 0;

#ifdef W_TEXELS
// Loads sixteen bytes instead of four, which costs less than a word of a storage buffer.
TEXELS(BLOCKS_BUFFER, blocks)
#define BLOCKS_WORD(I) TEXEL(blocks, (I) / 4)[(I) % 4]
#define BLOCKS_QUAD(I) TEXEL(blocks, I)
#else
BUFFER(BLOCKS_BUFFER, readonly, blocks, uint)
#define BLOCKS_WORD(I) AT(blocks, I)
#define BLOCKS_QUAD(I) AT(wide_blocks, I)
#endif

// Scale and minimum of the group's first and second half.
struct GroupScales {
  vec2 scale, minimum;
};
// Word s (0 to 3) of a group holds its quads s and s + 4. The struct has the integers of each quad
// as four bytes.
struct QuadPair {
  uint first, second;
};

#ifdef WEIGHT_GRIDS
#include "grids.glsl"
#else
#ifndef W_TEXELS
BUFFER(BLOCKS_BUFFER, readonly, wide_blocks, uvec4)
#endif

uint row_words(uint format) { return BLOCKS_ROW_WORDS(format, BLOCKS_COLUMNS); }

// row_at: the row's first word.
GroupScales group_scales(uint format, uint row_at, uint group) {
  GroupScales result;
  uint block_scales = row_at + BLOCKS_SCALES_AT(format, BLOCKS_COLUMNS);
  if (BLOCKS_WORD_SCALES(format)) {
    uint word = BLOCKS_WORD(block_scales + (group >> BLOCKS_SPAN(format)));
    vec2 pair = unpackHalf2x16(word);
    result.scale = vec2(BLOCKS_SCALES(format) == BLOCKS_SCALE_F32 ? uintBitsToFloat(word) : pair.x);
    result.minimum = vec2(BLOCKS_SCALES(format) == BLOCKS_PAIR         ? pair.y
                          : BLOCKS_SCALES(format) == BLOCKS_ZERO_POINT ? -float(word >> 16) * pair.x
                                                                       : 0.0);
    return result;
  }
  uint per_word = BLOCKS_SCALES(format) == BLOCKS_SUB_BYTE ? 4 : 2;
  uint place = group % per_word * (32 / per_word);
  uint block_scale = BLOCKS_WORD(block_scales + group / per_word) >> place;
  if (BLOCKS_SCALES(format) == BLOCKS_SCALE || BLOCKS_SCALES(format) == BLOCKS_SCALE_BF16) {
    result.scale = vec2(BLOCKS_SCALES(format) == BLOCKS_SCALE ? unpackHalf2x16(block_scale).x
                                                              : uintBitsToFloat(block_scale << 16));
    result.minimum = -float(BLOCKS_OFFSET(format)) * result.scale;
    return result;
  }
  uint super_scale =
      BLOCKS_WORD(row_at + BLOCKS_SUPER_SCALES_AT(format, BLOCKS_COLUMNS) + group / 8);
  if (BLOCKS_SCALES(format) == BLOCKS_SUB_PAIR) {
    vec2 pair = unpackHalf2x16(super_scale);
    result.scale = vec2(pair.x * float(block_scale & 255u));
    result.minimum = vec2(-pair.y * float(block_scale >> 8 & 255u));
  } else if (BLOCKS_SCALES(format) == BLOCKS_SUB_NIBBLES) {
    vec2 pair = unpackHalf2x16(super_scale);
    uvec2 bytes = uvec2(block_scale, block_scale >> 8);
    result.scale = pair.x * vec2(bytes & 15u);
    result.minimum = -pair.y * vec2(bytes >> 4 & 15u);
  } else {
    ivec2 bytes = ivec2(int(block_scale << 24) >> 24, int(block_scale << 16) >> 24);
    if (BLOCKS_SCALES(format) == BLOCKS_SUB_BYTE) bytes.y = bytes.x;
    result.scale = uintBitsToFloat(super_scale) * vec2(bytes);
    result.minimum = -float(BLOCKS_OFFSET(format)) * result.scale;
  }
  return result;
}

// A group's high bits; at least one word, so that callers need not check for their existence.
uvec2 group_high(uint format, uint row_at, uint group) {
  if (BLOCKS_HIGH_BITS(format) == 0) return uvec2(0);
  uint at = row_at + BLOCKS_HIGH_AT(format, BLOCKS_COLUMNS) + group * BLOCKS_HIGH_BITS(format);
  return uvec2(BLOCKS_WORD(at), BLOCKS_HIGH_BITS(format) == 2 ? BLOCKS_WORD(at + 1) : 0u);
}

// The sixteen integers of iq4_nl's and iq4_xs' nibbles, plus 128.
uint iq4_integer(uint code) {
  uint lower = code < 4 ? 0x3f2d1801u : 0x766a5d4fu, upper = code < 12 ? 0xa6998d81u : 0xf1d9c5b5u;
  return (code < 8 ? lower : upper) >> (code % 4 * 8) & 255u;
}
// Decodes four bytes of codes, for types whose codes stand for integers.
uint decode(uint format, uint codes) {
  if (BLOCKS_CODE(format) == BLOCKS_IQ4) {
    return iq4_integer(codes & 15u) | iq4_integer(codes >> 8 & 15u) << 8 |
           iq4_integer(codes >> 16 & 15u) << 16 | iq4_integer(codes >> 24 & 15u) << 24;
  }
  if (BLOCKS_CODE(format) == BLOCKS_FP4) {
    // Magnitudes 0, 1, 2, 3, 4, 6, 8, 12: from 4 on the two low bits count twice, and 7 gets 2
    // more. All four bytes at a time, because no byte overflows.
    uint large = codes >> 2 & 0x01010101u;
    uint magnitude =
        (codes & 0x07070707u) + (codes & large * 3) + ((codes & codes >> 1 & large) << 1);
    return 0x10101010u + magnitude - 2 * (magnitude & (codes >> 3 & 0x01010101u) * 15);
  }
  return codes;
}
// word: the word of the group that holds quad s; upper: the word four further on, where integers
// are bytes.
QuadPair unpack_pair(uint format, uint word, uint upper, uint s, uvec2 high) {
  QuadPair result;
  if (BLOCKS_VALUE_BITS(format) == 8) {
    result.first = word;
    result.second = upper;
    return result;
  }
  if (BLOCKS_VALUE_BITS(format) == 2) {
    // Quads s and s + 4 are in the lower half of each byte where s is even, in the upper half where
    // it is odd.
    result.first = word >> s % 2 * 4 & 0x03030303u;
    result.second = word >> s % 2 * 4 + 2 & 0x03030303u;
  } else {
    result.first = decode(format, word & 0x0f0f0f0fu);
    result.second = decode(format, word >> 4 & 0x0f0f0f0fu);
  }
  if (BLOCKS_HIGH_BITS(format) == 1) {
    result.first |= (high.x >> s & 0x01010101u) << BLOCKS_VALUE_BITS(format);
    result.second |= (high.x >> s >> 4 & 0x01010101u) << BLOCKS_VALUE_BITS(format);
  }
  if (BLOCKS_HIGH_BITS(format) == 2) {
    result.first |= (high.x >> 2 * s & 0x03030303u) << 4;
    result.second |= (high.y >> 2 * s & 0x03030303u) << 4;
  }
  return result;
}

QuadPair quad_pair(uint format, uint row_at, uint group, uint s, uvec2 high) {
  uint at =
      row_at + group * BLOCKS_VALUE_BITS(format) + (BLOCKS_VALUE_BITS(format) == 2 ? s / 2 : s);
  return unpack_pair(format, BLOCKS_WORD(at),
                     BLOCKS_VALUE_BITS(format) == 8 ? BLOCKS_WORD(at + 4) : 0u, s, high);
}
// Unpacks all four words at once.
void quad_pairs(uint format, uint row_at, uint group, uvec2 high, out QuadPair pairs[4]) {
  uint at = row_at + group * BLOCKS_VALUE_BITS(format);
  uvec4 words = BLOCKS_VALUE_BITS(format) == 2 ? uvec2(BLOCKS_WORD(at), BLOCKS_WORD(at + 1)).xxyy
                                               : BLOCKS_QUAD(at / 4);
  uvec4 upper = BLOCKS_VALUE_BITS(format) == 8 ? BLOCKS_QUAD(at / 4 + 1) : uvec4(0);
  [[unroll]] for (uint s = 0; s < 4; ++s) {
    pairs[s] = unpack_pair(format, words[s], upper[s], s, high);
  }
}

// Four numbers in E4M3, scaled like those of quad_quants(). With exponents increased by the
// difference of the biases (and of the factors) they are f32 numbers; numbers without an exponent
// start at zero, not at the smallest normal number.
vec4 e4m3_quad(uint bytes) {
  uvec4 magnitudes = uvec4(bytes << 20, bytes << 12, bytes << 4, bytes >> 4) & 0x07f00000u;
  vec4 values =
      uintBitsToFloat(magnitudes + uvec4(0x3c000000u, 0x40000000u, 0x44000000u, 0x3c000000u));
  vec4 from_zero = 2 * values - vec4(0.015625, 4, 1024, 0.015625);
  values = mix(values, from_zero, lessThan(magnitudes, uvec4(0x00800000u)));
  uvec4 signs = uvec4(bytes << 24, bytes << 16, bytes << 8, bytes) & 0x80000000u;
  return uintBitsToFloat(floatBitsToUint(values) | signs);
}

// The four bytes, the second and third one larger by 2^8 and 2^16: their scales are smaller by the
// same factors, which saves a shift for each. All of this is exact.
vec4 quad_quants(uint format, uint bytes) {
  if (BLOCKS_CODE(format) == BLOCKS_E4M3) return e4m3_quad(bytes);
  return vec4(float(int(bytes & 0xffu)), float(int(bytes & 0xff00u)), float(int(bytes & 0xff0000u)),
              float(int(bytes >> 24)));
}
vec4 quad_scale(float scale) { return scale * vec4(1.0, 0.00390625, 0.0000152587890625, 1.0); }
#endif

// Four neighbours, for kernels that read quads at any position.
vec4 block_quad(uint row, uint k) {
  uint row_at = row * row_words(FORMAT);
  uint group = k / 32, t = k / 4 % 8;
  GroupScales scales = group_scales(FORMAT, row_at, group);
  QuadPair pair = quad_pair(FORMAT, row_at, group, t % 4, group_high(FORMAT, row_at, group));
  bool second = t >= 4;
  return quad_quants(FORMAT, second ? pair.second : pair.first) *
             quad_scale(second ? scales.scale.y : scales.scale.x) +
         (second ? scales.minimum.y : scales.minimum.x);
}

// Eight neighbours; k is a multiple of eight.
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
  low = quad_quants(FORMAT, second ? pair.second : pair.first) * scale + minimum;
  high = quad_quants(FORMAT, second ? next.second : next.first) * scale + minimum;
}

#endif
