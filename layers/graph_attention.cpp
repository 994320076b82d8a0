#include "layers/graph_attention.h"

namespace mulciber {

Tensor GraphAttention::operator()(ProgramBuilder& builder, const Tensor& nodes,
                                  const Tensor& neighbors, const EdgeList& graph,
                                  Tensor* weights) const {
  const auto projected = [&](const char* name, const Linear& linear, const Tensor& x) {
    const auto scope = builder.scope(name);
    return linear(builder, x);
  };
  const Tensor q = projected("query", query, nodes), k = projected("key", key, neighbors);
  const Tensor v = value ? projected("value", *value, neighbors) : k;
  const Tensor edges = edge_softmax(builder, {q}, {k}, graph, score);
  if (weights) *weights = edges;
  return edge_sum(builder, edges, {v}, graph, value_size, averaged);
}

}  // namespace mulciber
