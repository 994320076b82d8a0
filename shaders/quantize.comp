// Quantizes activations to blocks of 32 (q8_1, blocks.h), one block per invocation, where no other
// dispatch could write blocks.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "quantize.h"
#define BUFFER_COUNT 2
#include "buffers.glsl"

PARAMS(QuantizeParams)

BUFFER(0, readonly, x, vec4)
#define Q8_1_BUFFER 1
#include "store_q8_1.glsl"

void main() {
  uint at = gl_GlobalInvocationID.x;
  if (at >= params.blocks) return;
  uint row = at / (params.columns / 32), block = at % (params.columns / 32);
  vec4 quads[8];
  [[unroll]] for (uint i = 0; i < 8; ++i) quads[i] = AT(x, at * 8 + i);
  store_q8_1(row, params.columns, block, quads);
}
