// The terms that disentangled attention adds to the score of a query and a key for their distance:
// the query times the distance's key, and the key times the distance's query. The rows' counts
// follow these numbers, so that attention finds all of its control in one buffer. One invocation
// per pair.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "disentangled.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"

layout(constant_id = DISENTANGLED_SIZE) const uint SIZE = 1;
layout(constant_id = DISENTANGLED_TERMS) const uint TERMS = 3;

PARAMS(DisentangledParams)
BUFFER(0, readonly, qkv, float)        // (rows, length, columns): queries, keys and more
BUFFER(1, readonly, distances, float)  // (distances, distance_columns): likewise
BUFFER(2, readonly, control, uint)
BUFFER(3, writeonly, y, uint)  // (rows, heads, length, length) floats, (rows) counts

void main() {
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE, width = params.heads * SIZE;
  for (uint at = gl_GlobalInvocationID.x; at < params.pairs + params.rows; at += stride) {
    if (at >= params.pairs) {
      AT(y, at) = AT(control, params.counts + at - params.pairs);
      continue;
    }
    uint key = at % params.positions, rest = at / params.positions;
    uint query = rest % params.positions;
    rest /= params.positions;
    uint head = rest % params.heads, row = rest / params.heads;
    uint number = min(AT(control, params.row_of + query + params.positions - 1u - key),
                      params.distances - 1u);
    uint q_at = (row * params.positions + query) * params.columns + head * SIZE;
    uint k_at = (row * params.positions + key) * params.columns + width + head * SIZE;
    uint distance_at = number * params.distance_columns + head * SIZE;
    float sum = 0.0;
    for (uint d = 0u; d < SIZE; ++d) {
      if ((TERMS & 1u) != 0u) sum += AT(qkv, q_at + d) * AT(distances, distance_at + width + d);
      if ((TERMS & 2u) != 0u) sum += AT(qkv, k_at + d) * AT(distances, distance_at + d);
    }
    AT(y, at) = floatBitsToUint(sum * params.scale);
  }
}
