// Writes activations in blocks (q8_1, blocks.h): 32 values become signed bytes; the scale is their
// largest magnitude over 127. Before including it: Q8_1_BUFFER is the index of the buffer.
#ifndef MULCIBER_STORE_Q8_1_GLSL
#define MULCIBER_STORE_Q8_1_GLSL
#include "blocks.h"

BUFFER(Q8_1_BUFFER, , q8_1_values, uvec4)
BUFFER(Q8_1_BUFFER, , q8_1_scales, uvec2)

/// quads: the 32 values of a block, in a row of `columns` columns.
void store_q8_1(uint row, uint columns, uint block, vec4 quads[8]) {
  vec4 sizes = abs(quads[0]);
  [[unroll]] for (uint i = 1; i < 8; ++i) sizes = max(sizes, abs(quads[i]));
  float scale = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)) / 127.0;
  // Scales below the normal numbers have no finite inverse. A NaN scale stays NaN.
  bool zeros = scale < 1.17549435e-38;
  float inverse = zeros ? 0.0 : 1.0 / scale;
  uint words[8];
  int sums[2] = int[2](0, 0);
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    // Halves are rounded away from zero, like in C's roundf().
    vec4 scaled = quads[i] * inverse;
    ivec4 numbers = ivec4(trunc(scaled + sign(scaled) * 0.5));
    sums[i / 4] += numbers.x + numbers.y + numbers.z + numbers.w;
    uvec4 bytes = uvec4(numbers) & 255u;
    words[i] = bytes.x | bytes.y << 8 | bytes.z << 16 | bytes.w << 24;
  }
  uint at = row * Q8_1_ROW_WORDS(columns);
  AT(q8_1_values, at / 4 + block * 2) = uvec4(words[0], words[1], words[2], words[3]);
  AT(q8_1_values, at / 4 + block * 2 + 1) = uvec4(words[4], words[5], words[6], words[7]);
  AT(q8_1_scales, (at + Q8_1_SCALES_AT(columns)) / 2 + block) =
      uvec2(floatBitsToUint(zeros ? 0.0 : scale), (uint(sums[0]) & 0xffffu) | uint(sums[1]) << 16);
}

#endif
