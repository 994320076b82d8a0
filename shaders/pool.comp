// Pools the states of each text's tokens, column by column; positions past the text's end do not
// count. One invocation per column of a row.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "pool.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"

layout(constant_id = POOL_MODE) const uint MODE = POOL_MEAN;

PARAMS(PoolParams)
BUFFER(0, readonly, x, float)
BUFFER(1, readonly, control, uint)
BUFFER(2, writeonly, y, float)

float pooled(uint first, uint count) {
  if (count == 0u) return 0.0;
  if (MODE == POOL_LAST) return AT(x, first + (count - 1u) * params.columns);
  float value = MODE == POOL_MAX ? AT(x, first) : 0.0;
  bool number = true;
  for (uint i = 0u; i < count; ++i) {
    float state = AT(x, first + i * params.columns);
    if (MODE == POOL_MAX) {
      // max() may ignore NaN, so a text with NaN would look valid.
      number = number && (floatBitsToUint(state) & 0x7fffffffu) <= 0x7f800000u;
      value = max(value, state);
    } else {
      value += MODE == POOL_WEIGHTED ? float(i + 1u) * state : state;
    }
  }
  float n = float(count);
  if (MODE == POOL_MAX) return number ? value : uintBitsToFloat(0x7fc00000u);
  if (MODE == POOL_ROOT) return value / sqrt(n);
  return value / (MODE == POOL_WEIGHTED ? 0.5 * n * (n + 1.0) : n);
}

void main() {
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint at = gl_GlobalInvocationID.x; at < params.elements; at += stride) {
    uint row = at / params.columns, column = at - row * params.columns;
    uint count = min(AT(control, params.counts + row), params.positions);
    AT(y, at) = pooled(row * params.positions * params.columns + column, count);
  }
}
