// The memory layout of rows of block types, for GLSL and C++ (docs/internals/quantization.md). A
// row is four runs of 32-bit words, and padding to 16 bytes:
//   values        per 32 elements 2 words of two bits each, 4 of nibbles, or 8 of bytes: the
//                 quantized integers, or codes that stand for them
//   high          per 32 elements one word for each further bit of the integers
//   block scales  per 32 elements (or more, SPAN) 8, 16 or 32 bits, as SCALES says
//   super scales  per super-block of 256 elements a word, where block scales are integers
// A value is scale * (unsigned integer) + minimum; minimum is -OFFSET * scale where none is stored.
#ifndef MULCIBER_BLOCKS_H
#define MULCIBER_BLOCKS_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// The format of a type, as one number (base/blocks.h gives it): specialization constant of kernels
// that serve several types. Rows for f16 and bf16 read 1 as bf16.
#define WEIGHT_FORMAT (CONSTANT_OP + 15)

#define BLOCKS_FORMAT(VALUE_BITS, HIGH_BITS, SCALES, OFFSET) \
  ((VALUE_BITS) | (HIGH_BITS) << 4 | (SCALES) << 8 | (OFFSET) << 16)
// A format whose values are codes, or whose block scales serve 2^SPAN times 32 elements.
#define BLOCKS_FORMAT_OF_CODES(VALUE_BITS, SCALES, OFFSET, CODE, SPAN) \
  (BLOCKS_FORMAT(VALUE_BITS, 0u, SCALES, OFFSET) | (CODE) << 12 | (SPAN) << 24)
#define BLOCKS_VALUE_BITS(FORMAT) ((FORMAT)&15u)
#define BLOCKS_HIGH_BITS(FORMAT) (((FORMAT) >> 4) & 15u)
#define BLOCKS_SCALES(FORMAT) (((FORMAT) >> 8) & 15u)
#define BLOCKS_CODE(FORMAT) (((FORMAT) >> 12) & 15u)
#define BLOCKS_OFFSET(FORMAT) (((FORMAT) >> 16) & 255u)
#define BLOCKS_SPAN(FORMAT) ((FORMAT) >> 24)

// CODE: the meaning of the values.
#define BLOCKS_INTEGERS 0u
#define BLOCKS_IQ4 1u   // indices of ggml's table of sixteen integers, plus 128
#define BLOCKS_FP4 2u   // E2M1 of the Open Compute Project, doubled, plus 16
#define BLOCKS_E4M3 3u  // not integers: E4M3 of the Open Compute Project, no offset

// SCALES: the content of the block scales.
#define BLOCKS_SCALE 0u  // f16 scale
#define BLOCKS_PAIR 1u   // f16 scale, f16 minimum (added)
// bytes of a scale and a minimum, times the super-block's pair of f16; the minimum is subtracted
#define BLOCKS_SUB_PAIR 2u
// signed bytes: a scale for each half of the 32, times the super-block's f32
#define BLOCKS_SUB_SCALES 3u
// a nibble of a scale and one of a minimum for each half of the 32, times the super-block's pair of
// f16; the minimum is subtracted
#define BLOCKS_SUB_NIBBLES 4u
#define BLOCKS_SUB_BYTE 5u    // a signed byte, times the super-block's f32
#define BLOCKS_SCALE_BF16 6u  // the upper half of an f32
#define BLOCKS_ZERO_POINT 7u  // f16 scale, 16-bit integer; the minimum is integer * -scale
#define BLOCKS_SCALE_F32 8u

// Whether each half of the 32 has its own scale. This is one comparison, because glslang emits
// constants of logical operations in the wrong order.
#define BLOCKS_HALVES(FORMAT) (BLOCKS_SCALES(FORMAT) - BLOCKS_SUB_SCALES < 2u)
#define BLOCKS_HAS_SUPER_SCALES(FORMAT) (BLOCKS_SCALES(FORMAT) - BLOCKS_SUB_PAIR < 4u)
// Whether block scales are words, and their number.
#define BLOCKS_WORD_SCALES(FORMAT) \
  (BLOCKS_SCALES(FORMAT) == BLOCKS_PAIR || BLOCKS_SCALES(FORMAT) >= BLOCKS_ZERO_POINT)
#define BLOCKS_SPANS(FORMAT, DEPTH) \
  (((DEPTH) / 32 + (1u << BLOCKS_SPAN(FORMAT)) - 1) >> BLOCKS_SPAN(FORMAT))

// The format of cached keys and values (attention_common.glsl), which kernels use by name.
#define BLOCKS_Q8_0 BLOCKS_FORMAT(8u, 0u, BLOCKS_SCALE, 128u)

// Words from the start of a row of DEPTH elements to its runs.
#define BLOCKS_HIGH_AT(FORMAT, DEPTH) ((DEPTH) / 32 * BLOCKS_VALUE_BITS(FORMAT))
#define BLOCKS_SCALES_AT(FORMAT, DEPTH) \
  ((DEPTH) / 32 * (BLOCKS_VALUE_BITS(FORMAT) + BLOCKS_HIGH_BITS(FORMAT)))
#define BLOCKS_SUPER_SCALES_AT(FORMAT, DEPTH)                                                  \
  (BLOCKS_SCALES_AT(FORMAT, DEPTH) + (BLOCKS_WORD_SCALES(FORMAT) ? BLOCKS_SPANS(FORMAT, DEPTH) \
                                      : BLOCKS_SCALES(FORMAT) == BLOCKS_SUB_BYTE               \
                                          ? ((DEPTH) / 32 + 3) / 4                             \
                                          : ((DEPTH) / 32 + 1) / 2))
#define BLOCKS_ROW_WORDS(FORMAT, DEPTH)                          \
  ((BLOCKS_SUPER_SCALES_AT(FORMAT, DEPTH) +                      \
    (BLOCKS_HAS_SUPER_SCALES(FORMAT) ? (DEPTH) / 256 : 0) + 3) / \
   4 * 4)

// Activations in blocks (q8_1), for integer products. A row is two runs of 32-bit words, and
// padding to 16 bytes:
//   values  per 32 elements 8 words: the quantized integers, signed bytes in order
//   scales  per 32 elements 2 words: the f32 scale, and the sums of the first and of the last 16
//           integers, 16 bits each
// A value is scale * integer. ggml's block_q8_1 has one sum, times the scale, and both in f16. Here
// the sums are integers, so that the subtraction of weights' offsets and minima is exact, and there
// are two, for types with a scale for each half.
#define Q8_1_SCALES_AT(DEPTH) ((DEPTH) / 32 * 8)
#define Q8_1_ROW_WORDS(DEPTH) (((DEPTH) / 32 * 10 + 3) / 4 * 4)

#endif
