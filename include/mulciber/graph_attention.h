// Graph attention networks on any Vulkan device: nodes attend to their neighbours alone, so time
// and memory grow with the number of edges. Formulas and sources: docs/reference/attention.md.
// Errors are the types of mulciber/error.h; nothing is printed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "mulciber/attention.h"

namespace mulciber {

/// A directed graph in compressed sparse rows: node n attends to sources [offsets[n], offsets[n +
/// 1]).
struct Graph {
  std::vector<uint32_t> offsets;  // (nodes + 1), ascending from 0 to the number of edges
  std::vector<uint32_t> sources;  // (edges)
};

struct GraphEdge {
  uint32_t source = 0;  // the node that is attended to
  uint32_t target = 0;  // the node that attends
};
struct GraphOptions {
  bool both_ways = false;   // every edge counts in both directions
  bool self_loops = false;  // add a self-loop to nodes that have none
};
/// Makes a graph whose sources are in ascending order for each node. Duplicate edges count twice.
/// Throws ShapeError naming an edge whose node is not below `nodes`.
MULCIBER_API Graph make_graph(uint32_t nodes, const std::vector<GraphEdge>& edges,
                              const GraphOptions& options = {});

/// Projections have weights of (out, in) and read all columns of a node. score, scale and
/// score_vector are those of AttentionDescription.
struct GraphAttentionDescription {
  uint32_t heads = 1;
  Projection query;                      // for the node that attends: (heads * score columns, in)
  Projection key;                        // for its neighbours
  std::optional<Projection> value = {};  // for its neighbours: (heads * size, in); none: the keys
  AttentionScore score = AttentionScore::kLeaky;
  std::optional<float> scale = {};       // none: (score columns)^-0.5 for kDot, else 1
  std::vector<float> score_vector = {};  // v for kAdditive and kLeaky: (heads, score columns)
  float leaky_slope = 0.2f;
  bool averaged = false;  // heads are averaged instead of concatenated
};

/// Describes the first graph attention network: the score of an edge is leaky_relu(target . W
/// x_node + source . W x_neighbour), values are W x. weight: (heads * size, in); target and source:
/// (heads, size). Source: Veličković et al. 2018, arXiv:1710.10903. (GATv2, arXiv:2105.14491, is a
/// description with query W_l, key W_r and score_vector a.) Throws ShapeError.
MULCIBER_API GraphAttentionDescription gat_description(const FloatArray& weight, uint32_t heads,
                                                       const std::vector<float>& target,
                                                       const std::vector<float>& source);

struct GraphAttentionResult {
  FloatArray output;   // (nodes, heads * size), or (nodes, size) if averaged
  FloatArray weights;  // (edges, heads), in the order of the graph's edges
};

/// One layer over one graph on a device. It keeps weights, edges and the program of the last call
/// there. Not thread-safe.
class MULCIBER_API GraphAttentionLayer {
 public:
  /// Throws ShapeError when the weights' shapes disagree, or the graph is malformed.
  GraphAttentionLayer(std::shared_ptr<Device> device, GraphAttentionDescription description,
                      Graph graph);
  ~GraphAttentionLayer();
  GraphAttentionLayer(GraphAttentionLayer&&) noexcept;
  GraphAttentionLayer& operator=(GraphAttentionLayer&&) noexcept;

  /// Computes the layer. x: (nodes, in). A node without edges gives zeros. Throws ShapeError,
  /// KernelError, DeviceError.
  GraphAttentionResult operator()(const FloatArray& x);
  /// Computes the layer with separate neighbours. nodes: the nodes that attend, (nodes, in);
  /// neighbors: (neighbours, in), which the graph's sources index.
  GraphAttentionResult operator()(const FloatArray& nodes, const FloatArray& neighbors);
  uint64_t trim();  // see Attention::trim(); edges stay too

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
