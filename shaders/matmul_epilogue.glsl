// The epilogue of a product: bias, activation, gates, the old value of y, and y's type. The
// including file defines Y_BUFFER and BIAS_BUFFER. A row of kernels.def or the including file may
// define
//   STORAGE16    f16 results are stored as 16-bit values; without it two share a word by atomics
//   SPLIT_K      K can be split over workgroups along z (split-K): their partial sums then go to
//                (parts, rows, columns) instead of y, and split_k_reduce finishes them
// A kernel whose tiles may exceed y defines BEYOND_Y and WITHIN_COLUMNS.
#ifndef MULCIBER_MATMUL_EPILOGUE_GLSL
#define MULCIBER_MATMUL_EPILOGUE_GLSL

#include "activation.glsl"

layout(constant_id = MATMUL_ACTIVATION) const uint ACTIVATION_FUNCTION = 0;
layout(constant_id = MATMUL_BIAS) const uint HAS_BIAS = 0;
layout(constant_id = MATMUL_ACCUMULATE) const uint ACCUMULATE = 0;
layout(constant_id = MATMUL_GATED) const uint GATED = 0;

#ifndef BEYOND_Y
#define BEYOND_Y(ROW, COLUMN) ((ROW) >= params.rows || (COLUMN) >= params.columns)
#define WITHIN_COLUMNS(COLUMN) ((COLUMN) < params.columns)
#endif

#ifndef NORMALIZED
BUFFER(BIAS_BUFFER, readonly, bias, float)
#endif

#ifndef ACTIVATION_F16
BUFFER(Y_BUFFER, , y, float)
float y_load(uint at) { return AT(y, at); }
void y_store(uint at, float value) { AT(y, at) = value; }
#elif defined(STORAGE16)
BUFFER(Y_BUFFER, , y, float16_t)
float y_load(uint at) { return float(AT(y, at)); }
void y_store(uint at, float value) { AT(y, at) = float16_t(value); }
#else
// The other half of the word may belong to another invocation. Each changes only its own bits, so
// the result does not depend on their order.
BUFFER(Y_BUFFER, , y, uint)
float y_load(uint at) { return unpackHalf2x16(AT(y, at / 2))[at % 2]; }
void y_store(uint at, float value) {
  uint shift = (at % 2) * 16;
  atomicAnd(AT(y, at / 2), ~(0xffffu << shift));
  atomicOr(AT(y, at / 2), packHalf2x16(vec2(value, 0)) << shift);
}
#endif

#ifdef SPLIT_K
layout(constant_id = MATMUL_SPLIT_DEPTH) const uint SPLIT_DEPTH = 0;

BUFFER(Y_BUFFER, writeonly, partial_sums, float)

/// The part of K that this workgroup takes: [x, y).
uvec2 own_depth() {
  if (SPLIT_DEPTH == 0) return uvec2(0, params.depth);
  uint first = gl_WorkGroupID.z * SPLIT_DEPTH;
  return uvec2(first, min(first + SPLIT_DEPTH, params.depth));
}
#endif

// Sum `column` plus its bias.
float biased(uint column, float sum) {
#ifdef NORMALIZED
  return sum;
#else
  return HAS_BIAS != 0 ? sum + AT(bias, params.first_bias + column) : sum;
#endif
}

void store_finished(uint row, uint column, float value) {
  uint at = row * params.row_stride + params.first_column + column;
  if (ACCUMULATE != 0) value += y_load(at);
  y_store(at, value);
}

// Finishes one sum and writes it, or writes a partial sum unchanged. Not for gated products.
void store_result(uint row, uint column, float sum) {
#ifdef SPLIT_K
  if (SPLIT_DEPTH != 0) {
    AT(partial_sums, (gl_WorkGroupID.z * params.rows + row) * params.columns + column) = sum;
    return;
  }
#endif
  store_finished(row, column, activate(biased(column, sum), ACTIVATION_FUNCTION));
}

// Finishes the sums of `column`, which is even, and of the next column: two elements of y, or one
// where the product is gated. A gated product has an even number of columns.
void store_pair(uint row, uint column, float first, float second) {
  if (BEYOND_Y(row, column)) return;
  if (GATED != 0) {
    float gate = activate(biased(column, first), ACTIVATION_FUNCTION);
    store_finished(row, column / 2, gate * biased(column + 1, second));
  } else {
    store_result(row, column, first);
    if (WITHIN_COLUMNS(column + 1)) store_result(row, column + 1, second);
  }
}

#endif
