// One number of a row of block types, for kernels whose drivers load elements one by one. The value
// is that of a quad in blocks.glsl.
#ifndef MULCIBER_BLOCK_ELEMENT_GLSL
#define MULCIBER_BLOCK_ELEMENT_GLSL
#include "blocks.glsl"

float block_element(uint row, uint k) {
  uint row_at = row * row_words(FORMAT);
  uint group = k / 32, s = k / 4 % 4, byte = k % 4 * 8;
  bool second = k % 32 >= 16;
  GroupScales scales = group_scales(FORMAT, row_at, group);
  uint at = row_at + group * BLOCKS_VALUE_BITS(FORMAT), value;
  if (BLOCKS_VALUE_BITS(FORMAT) == 8) {
    value = AT(blocks, at + s + (second ? 4 : 0)) >> byte & 255u;
  } else if (BLOCKS_VALUE_BITS(FORMAT) == 2) {
    value = AT(blocks, at + s / 2) >> (byte + s % 2 * 4 + (second ? 2 : 0)) & 3u;
  } else {
    value = decode(FORMAT, AT(blocks, at + s) >> (byte + (second ? 4 : 0)) & 15u) & 255u;
  }
  uvec2 high = group_high(FORMAT, row_at, group);
  if (BLOCKS_HIGH_BITS(FORMAT) == 1) {
    value |= (high.x >> (s + byte + (second ? 4 : 0)) & 1u) << BLOCKS_VALUE_BITS(FORMAT);
  }
  if (BLOCKS_HIGH_BITS(FORMAT) == 2) {
    value |= ((second ? high.y : high.x) >> (2 * s + byte) & 3u) << 4;
  }
  return quad_quants(FORMAT, value).x * (second ? scales.scale.y : scales.scale.x) +
         (second ? scales.minimum.y : scales.minimum.x);
}

#endif
