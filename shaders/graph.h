// Attention over a graph's edges: constants and parameters that kernels and C++ share.
#ifndef MULCIBER_SHADERS_GRAPH_H
#define MULCIBER_SHADERS_GRAPH_H

#ifdef __cplusplus
#include "shaders/include/interface.h"
#endif

// Specialization constants.
#define GRAPH_HEADS (CONSTANT_OP + 0)
#define GRAPH_SIZE (CONSTANT_OP + 1)      // columns of a head
#define GRAPH_SCORE (CONSTANT_OP + 2)     // SCORE_* of attention.h
#define GRAPH_AVERAGED (CONSTANT_OP + 3)  // 1: the mean over heads, 0: heads side by side

// Words of the graph: offsets[nodes + 1], then sources[edges] at a separate position.
SHADER_STRUCT(EdgeSoftmaxParams) {
  uint first;  // nodes [first, end) of this dispatch
  uint end;
  uint edges;
  uint neighbors;      // rows of keys
  uint offsets;        // word where the edges of node n begin: offsets + n
  uint sources;        // word of the first edge's source
  uint score_vector;   // word of the score vector's first number, if there is one
  uint query_columns;  // columns of a row of q
  uint query_first;    // column of head 0
  uint key_columns;
  uint key_first;
  float scale;
  float slope;
}
SHADER_STRUCT_END

SHADER_STRUCT(EdgeSumParams) {
  uint first;  // nodes [first, end) of this dispatch
  uint end;
  uint edges;      // rows of weights
  uint neighbors;  // rows of values
  uint offsets;
  uint sources;
  uint value_columns;
  uint value_first;
}
SHADER_STRUCT_END

#endif
