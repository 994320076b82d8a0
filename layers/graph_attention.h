// Graph attention: each node of a graph attends only to its neighbours.
#pragma once

#include <optional>

#include "layers/linear.h"
#include "ops/graph.h"

namespace mulciber {

/// The two kinds differ in the projections before the score:
///   GAT     query, key: one number a head, a_l W and a_r W; value: W; the vector is ones
///   GATv2   query: W_l, key: W_r, which is also the value; the vector is a
/// Source: Veličković et al. 2018, arXiv:1710.10903; Brody et al. 2022, arXiv:2105.14491.
struct GraphAttention {
  Linear query;                 // (heads * score.size, columns)
  Linear key;                   // (heads * score.size, columns)
  std::optional<Linear> value;  // (heads * value_size, columns); none: keys are values
  EdgeScore score;
  uint32_t value_size = 0;
  bool averaged = false;  // the mean over the heads, usual in last layers

  /// nodes: (nodes, columns), which attend; neighbors: (neighbours, columns), which the graph's
  /// sources refer to, often the same tensor. Result: (nodes, heads * value_size), or averaged
  /// (nodes, value_size); `weights` receives the attention weights, (edges, heads). Throws
  /// ShapeError naming the layer.
  Tensor operator()(ProgramBuilder& builder, const Tensor& nodes, const Tensor& neighbors,
                    const EdgeList& graph, Tensor* weights = nullptr) const;
};

}  // namespace mulciber
