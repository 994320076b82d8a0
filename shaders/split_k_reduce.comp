// Finishes a split-K product: sums the partial sums in the order of K, so that results repeat bit
// for bit, and applies the product's epilogue. An invocation takes two neighbouring columns. The
// row's first type is that of the partial sums, its second that of y.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "matmul.h"
#ifdef WEIGHT_F16
#define ACTIVATION_F16
#endif
#include "types.glsl"
#define BUFFER_COUNT 3
#include "buffers.glsl"

PARAMS(SplitKReduceParams)

#define BIAS_BUFFER 1
#define Y_BUFFER 2
#include "matmul_epilogue.glsl"

BUFFER(0, readonly, partials, float)

void main() {
  const uint pairs = (params.columns + 1) / 2;
  const uint pair = gl_GlobalInvocationID.x;
  const uint row = pair / pairs, column = pair % pairs * 2;
  if (row >= params.rows) return;
  const uint part = params.rows * params.columns;
  const bool both = column + 1 < params.columns;
  uint at = row * params.columns + column;
  float first = 0, second = 0;
  for (uint i = 0; i < params.parts; ++i) {
    first += AT(partials, at);
    if (both) second += AT(partials, at + 1);
    at += part;
  }
  store_pair(row, column, first, second);
}
