// Attention weights of each node of a graph over its neighbours: the scores of its edges, and their
// softmax. Only edges are read and written, so the cost grows with their number. One invocation per
// node and head: neighbouring invocations share a node's edges, and no two write one number.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "attention.h"
#include "graph.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"
#include "tanh.glsl"

layout(constant_id = GRAPH_HEADS) const uint HEADS = 1;
layout(constant_id = GRAPH_SIZE) const uint SIZE = 1;
layout(constant_id = GRAPH_SCORE) const uint SCORE = SCORE_DOT;

PARAMS(EdgeSoftmaxParams)
BUFFER(0, readonly, q, float)
BUFFER(1, readonly, k, float)
BUFFER(2, readonly, graph, uint)
BUFFER(3, , y, float)

float score_of(uint query, uint key, uint head) {
  float sum = 0.0;
  for (uint d = 0u; d < SIZE; ++d) {
    float a = AT(q, query + d), b = AT(k, key + d);
    if (SCORE == SCORE_DOT) {
      sum += a * b;
    } else if (SCORE == SCORE_DISTANCE) {
      sum -= (a - b) * (a - b);
    } else {
      float weight = uintBitsToFloat(AT(graph, params.score_vector + head * SIZE + d));
      float both = a + b;
      sum += weight * (SCORE == SCORE_ADDITIVE ? safe_tanh(both)
                                               : (both < 0.0 ? params.slope * both : both));
    }
  }
  return sum * params.scale;
}

void main() {
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  uint items = (params.end - params.first) * HEADS;
  for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
    uint item = params.first * HEADS + i;
    uint node = item / HEADS, head = item - node * HEADS;
    // An invalid graph must not read outside of the buffers.
    uint begin = min(AT(graph, params.offsets + node), params.edges);
    uint end = min(AT(graph, params.offsets + node + 1u), params.edges);
    uint query = node * params.query_columns + params.query_first + head * SIZE;

    float highest = uintBitsToFloat(0xff800000u);
    for (uint edge = begin; edge < end; ++edge) {
      uint source = min(AT(graph, params.sources + edge), params.neighbors - 1u);
      uint key = source * params.key_columns + params.key_first + head * SIZE;
      float score = score_of(query, key, head);
      AT(y, edge * HEADS + head) = score;
      highest = max(highest, score);
    }
    float sum = 0.0;
    for (uint edge = begin; edge < end; ++edge) {
      float weight = exp(AT(y, edge * HEADS + head) - highest);
      AT(y, edge * HEADS + head) = weight;
      sum += weight;
    }
    for (uint edge = begin; edge < end; ++edge) AT(y, edge * HEADS + head) /= sum;
  }
}
