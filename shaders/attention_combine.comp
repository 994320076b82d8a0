// Combines the partial sums of attention over parts of the keys: rescales the sums to the largest
// maximum and adds them up in the order of the keys, then divides by the totals, combined likewise.
// An invocation takes four columns. The row's second type is that of the result.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "attention.h"
#define BUFFER_COUNT 2
#include "buffers.glsl"

PARAMS(AttentionCombineParams)

BUFFER(0, readonly, partials, vec4)
#ifdef WEIGHT_F16
BUFFER(1, writeonly, result, uvec2)
void store(uint quad, vec4 value) {
  AT(result, quad) = uvec2(packHalf2x16(value.xy), packHalf2x16(value.zw));
}
#else
BUFFER(1, writeonly, result, vec4)
void store(uint quad, vec4 value) { AT(result, quad) = value; }
#endif

void main() {
  const uint line = gl_GlobalInvocationID.x / params.quads;
  const uint quad = gl_GlobalInvocationID.x % params.quads;
  if (line >= params.lines) return;
  const uint step = params.quads + 1;
  const uint base = line * params.parts * step;
  float maximum = AT(partials, base + params.quads).x;
  for (uint i = 1; i < params.parts; ++i)
    maximum = max(maximum, AT(partials, base + i * step + params.quads).x);
  float total = 0;
  vec4 sums = vec4(0);
  for (uint i = 0; i < params.parts; ++i) {
    vec2 part = AT(partials, base + i * step + params.quads).xy;
    float factor = exp(part.x - maximum);
    total += part.y * factor;
    sums += AT(partials, base + i * step + quad) * factor;
  }
  // The sink; all parts know it, the first one's copy is used.
  const vec2 sink = AT(partials, base + params.quads).zw;
  if (sink.y > 0 && total > 0) total += sink.y * exp(min(sink.x - maximum, 80.0));
  store(line * params.quads + quad, total > 0 ? sums / total : vec4(0));
}
