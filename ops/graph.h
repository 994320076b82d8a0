// Attention over the edges of a graph: absent edges take neither time nor memory.
#pragma once

#include "mulciber/attention.h"
#include "ops/attention.h"

namespace mulciber {

/// The edges of a graph in compressed sparse rows, in a u32 tensor: the edges of node n are
/// [offsets[n], offsets[n + 1]), and sources[e] is the neighbour of edge e. Invalid lists (falling
/// offsets, neighbours past the last) read no memory outside of the tensors, but their results mean
/// nothing: callers check the lists first.
struct EdgeList {
  Tensor tensor;
  ControlArray<uint32_t> offsets;  // (nodes + 1)
  ControlArray<uint32_t> sources;  // (edges)

  uint64_t nodes() const { return offsets.count - uint64_t{1}; }
  uint64_t edges() const { return sources.count; }
};

struct EdgeScore {
  uint32_t heads = 1;
  uint32_t size = 0;  // columns of a query and of a key in a head
  AttentionScore score = AttentionScore::kLeaky;
  float scale = 1;
  float leaky_slope = 0.2f;
  /// (heads, size) in the edges' tensor: the vector of kAdditive and kLeaky.
  std::optional<ControlArray<float>> vector;
};

/// Computes the attention weights of each node over its neighbours: a softmax over its edges of
/// score(q of the node, k of the neighbour), with the scores of attention(). q: (nodes, ...), k:
/// (neighbours, ...), f32. Result: (edges, heads) f32, in the order of the edges. Throws ShapeError
/// naming the layer. Source: Veličković et al. 2018, arXiv:1710.10903; Brody et al. 2022,
/// arXiv:2105.14491.
Tensor edge_softmax(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                    const EdgeList& graph, const EdgeScore& score);

/// Sums the neighbours' values times the weights of their edges for each node; zeros for a node
/// head. Result: (nodes, heads * size) f32, or with `averaged` the mean over the heads, (nodes,
/// size). Throws ShapeError naming the layer.
Tensor edge_sum(ProgramBuilder& builder, const Tensor& weights, const HeadColumns& v,
                const EdgeList& graph, uint32_t size, bool averaged = false);

}  // namespace mulciber
