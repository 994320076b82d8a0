// Attention over the edges of a graph: what is no edge takes neither time nor memory.
#pragma once

#include "mulciber/attention.h"
#include "ops/attention.h"

namespace mulciber {

/// The edges of a graph by the node that attends (compressed sparse rows), in a u32 tensor: those
/// of node n are [offsets[n], offsets[n + 1]), and sources[e] is the neighbour of edge e. What does
/// not fit (falling offsets, neighbours past the last) reads no memory outside of the tensors, but
/// means nothing: the host checks it before.
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

/// How a node's attention is divided among its neighbours: softmax over its edges of score(q of the
/// node, k of the neighbour), as attention() does over all keys. q: (nodes, ...), k: (neighbours,
/// ...), f32. Result: (edges, heads) f32, in the order of the edges. Throws ShapeError naming the
/// layer. Source: Veličković et al. 2018, arXiv:1710.10903; Brody et al. 2022, arXiv:2105.14491.
Tensor edge_softmax(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                    const EdgeList& graph, const EdgeScore& score);

/// The neighbours' values times the weights of their edges, added up for each node; zeros for a
/// node without edges. weights: (edges, heads) f32; v: (neighbours, ...) f32, `size` columns a
/// head. Result: (nodes, heads * size) f32, or with `averaged` the mean over the heads, (nodes,
/// size). Throws ShapeError naming the layer.
Tensor edge_sum(ProgramBuilder& builder, const Tensor& weights, const HeadColumns& v,
                const EdgeList& graph, uint32_t size, bool averaged = false);

}  // namespace mulciber
