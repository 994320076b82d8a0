// How rows of block types lie in memory, for GLSL and C++ (docs/quantization.md). A row is four
// runs of 32-bit words, and padding to 16 bytes:
//   values        per 32 elements 4 words of nibbles, or 8 of bytes: the quantized integers
//   high          per 32 elements one word for each further bit of the integers
//   block scales  per 32 elements 16 bits (an f16 scale, or two bytes), or 32 (f16 scale and
//   minimum) super scales  per super-block of 256 elements a word, where block scales are bytes
// A value is scale * (unsigned integer) + minimum; minimum is -OFFSET * scale where none is stored.
#ifndef MULCIBER_BLOCKS_H
#define MULCIBER_BLOCKS_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// The format of a type, as one number (base/blocks.h gives it): specialization constant of
// kernels that serve several types. Rows for f16 and bf16 read 1 as bf16.
#define WEIGHT_FORMAT (CONSTANT_OP + 15)

#define BLOCKS_FORMAT(VALUE_BITS, HIGH_BITS, SCALES, OFFSET) \
  ((VALUE_BITS) | (HIGH_BITS) << 4 | (SCALES) << 8 | (OFFSET) << 16)
#define BLOCKS_VALUE_BITS(FORMAT) ((FORMAT)&15u)
#define BLOCKS_HIGH_BITS(FORMAT) (((FORMAT) >> 4) & 15u)
#define BLOCKS_SCALES(FORMAT) (((FORMAT) >> 8) & 255u)
#define BLOCKS_OFFSET(FORMAT) ((FORMAT) >> 16)

// SCALES: what the block scales hold.
#define BLOCKS_SCALE 0u  // f16 scale
#define BLOCKS_PAIR 1u   // f16 scale, f16 minimum (added)
// bytes of a scale and a minimum, times the super-block's pair of f16; the minimum is subtracted
#define BLOCKS_SUB_PAIR 2u
// signed bytes: scales of either half of the 32, times the super-block's f32
#define BLOCKS_SUB_SCALES 3u

// The format that kernels name: keys and values are kept in it (attention_common.glsl).
#define BLOCKS_Q8_0 BLOCKS_FORMAT(8u, 0u, BLOCKS_SCALE, 128u)

// Words from the start of a row of DEPTH elements to its runs.
#define BLOCKS_HIGH_AT(FORMAT, DEPTH) ((DEPTH) / 32 * BLOCKS_VALUE_BITS(FORMAT))
#define BLOCKS_SCALES_AT(FORMAT, DEPTH) \
  ((DEPTH) / 32 * (BLOCKS_VALUE_BITS(FORMAT) + BLOCKS_HIGH_BITS(FORMAT)))
#define BLOCKS_SUPER_SCALES_AT(FORMAT, DEPTH) \
  (BLOCKS_SCALES_AT(FORMAT, DEPTH) +          \
   (BLOCKS_SCALES(FORMAT) == BLOCKS_PAIR ? (DEPTH) / 32 : ((DEPTH) / 32 + 1) / 2))
#define BLOCKS_ROW_WORDS(FORMAT, DEPTH)                                   \
  ((BLOCKS_SUPER_SCALES_AT(FORMAT, DEPTH) +                               \
    (BLOCKS_SCALES(FORMAT) >= BLOCKS_SUB_PAIR ? (DEPTH) / 256 : 0) + 3) / \
   4 * 4)

// Activations in blocks (q8_1), for products of integers. A row is two runs of 32-bit words, and
// padding to 16 bytes:
//   values  per 32 elements 8 words: the quantized integers, signed bytes in order
//   scales  per 32 elements 2 words: the f32 scale, and the sums of the first and of the last 16
//           integers, 16 bits each
// A value is scale * integer. ggml's block_q8_1 has one sum, times the scale, and both in f16; here
// the sums are integers, so that what offsets and minima of weights take away is exact, and two,
// for types with a scale for each half.
#define Q8_1_SCALES_AT(DEPTH) ((DEPTH) / 32 * 8)
#define Q8_1_ROW_WORDS(DEPTH) (((DEPTH) / 32 * 10 + 3) / 4 * 4)

#endif
