// Sums the results of a token's experts, each times its gate.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "experts.h"
#define BUFFER_COUNT 3
#include "buffers.glsl"

layout(constant_id = EXPERT_NORMALIZE) const uint NORMALIZE = 0;

PARAMS(ExpertParams)
BUFFER(0, readonly, x, float)
BUFFER(1, readonly, routes, uint)
BUFFER(2, writeonly, y, float)

void main() {
  const uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  for (uint i = gl_GlobalInvocationID.x; i < params.rows * params.columns; i += stride) {
    const uint token = i / params.columns, column = i - token * params.columns;
    float sum = 0.0, gates = 0.0;
    for (uint slot = 0; slot < params.experts_per_token; ++slot) {
      const uint route = token * params.experts_per_token + slot;
      const float gate = exp(uintBitsToFloat(AT(routes, route * 2)));
      sum += gate * AT(x, route * params.columns + column);
      gates += gate;
    }
    AT(y, i) = NORMALIZE == 1 ? sum / gates : sum;
  }
}
