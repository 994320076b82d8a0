// Sums the values of each node's neighbours, weighted by its edges. One invocation per column of a
// node: neighbouring invocations read neighbouring columns of a value.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"
#include "graph.h"
#define BUFFER_COUNT 4
#include "buffers.glsl"

layout(constant_id = GRAPH_HEADS) const uint HEADS = 1;
layout(constant_id = GRAPH_SIZE) const uint SIZE = 1;
layout(constant_id = GRAPH_AVERAGED) const uint AVERAGED = 0;

PARAMS(EdgeSumParams)
BUFFER(0, readonly, weights, float)
BUFFER(1, readonly, v, float)
BUFFER(2, readonly, graph, uint)
BUFFER(3, writeonly, y, float)

float sum_of(uint node, uint column, uint head) {
  uint begin = min(AT(graph, params.offsets + node), params.edges);
  uint end = min(AT(graph, params.offsets + node + 1u), params.edges);
  float sum = 0.0;
  for (uint edge = begin; edge < end; ++edge) {
    uint source = min(AT(graph, params.sources + edge), params.neighbors - 1u);
    sum += AT(weights, edge * HEADS + head) *
           AT(v, source * params.value_columns + params.value_first + column);
  }
  return sum;
}

void main() {
  uint columns = AVERAGED == 1u ? SIZE : HEADS * SIZE;
  uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
  uint items = (params.end - params.first) * columns;
  for (uint i = gl_GlobalInvocationID.x; i < items; i += stride) {
    uint at = params.first * columns + i;
    uint node = at / columns, column = at - node * columns;
    float value;
    if (AVERAGED == 1u) {
      float sum = 0.0;
      for (uint head = 0u; head < HEADS; ++head) sum += sum_of(node, head * SIZE + column, head);
      value = sum / float(HEADS);
    } else {
      value = sum_of(node, column, column / SIZE);
    }
    AT(y, at) = value;
  }
}
