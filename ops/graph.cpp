#include "ops/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "mulciber/error.h"
#include "ops/row_slices.h"
#include "runtime/op.h"
#include "shaders/attention.h"
#include "shaders/graph.h"

namespace mulciber {
namespace {

static_assert(static_cast<uint32_t>(AttentionScore::kDot) == SCORE_DOT &&
              static_cast<uint32_t>(AttentionScore::kAdditive) == SCORE_ADDITIVE &&
              static_cast<uint32_t>(AttentionScore::kLeaky) == SCORE_LEAKY &&
              static_cast<uint32_t>(AttentionScore::kDistance) == SCORE_DISTANCE);

/// Errors of one op, with the layer's name.
struct Refuse {
  const ProgramBuilder& builder;
  const char* op;

  [[noreturn]] void operator()(std::string problem, std::string remedy) const {
    throw ShapeError(builder.path() + ": " + op, std::move(problem), std::move(remedy));
  }
};

void check_graph(const Refuse& refuse, const EdgeList& graph) {
  if (graph.offsets.count < 2 || graph.sources.count == 0)
    refuse(
        fmt::format("a graph of {} offsets and {} edges", graph.offsets.count, graph.sources.count),
        "give a node or more, an offset more than that, and an edge or more");
  if (!fits(graph.offsets, graph.offsets.count, graph.tensor) ||
      !fits(graph.sources, graph.sources.count, graph.tensor))
    refuse("the edges lie outside of their tensor, or it is not u32", "");
}

/// Checks f32 columns of all heads in a tensor whose rows are nodes.
void check_columns(const Refuse& refuse, const char* what, const HeadColumns& columns,
                   uint64_t needed) {
  const Tensor& tensor = columns.tensor;
  if (tensor.type != DataType::kF32 || tensor.shape.elements() == 0 ||
      columns.first + needed > tensor.shape.columns())
    refuse(fmt::format("{} are {} {}, of which {} columns from {} are taken", what,
                       name_of(tensor.type), tensor.shape.to_string(), needed, columns.first),
           "give f32, a row for each node and the columns of all heads");
}

void check_size(const Refuse& refuse, const Tensor& tensor) {
  const uint64_t most = refuse.builder.capabilities().max_storage_range;
  if (tensor.bytes() > most || tensor.shape.elements() > UINT32_MAX)
    refuse(fmt::format("{} takes {} bytes, the device binds {}", tensor.shape.to_string(),
                       tensor.bytes(), most),
           "take fewer heads at a time, or a part of the graph");
}

/// Adds dispatches of a kernel over all graph nodes, each within the work that one program node may
/// have. make(first, end): the parameters of graph nodes [first, end).
template <typename Make>
void add_nodes(ProgramBuilder& builder, const Node& pattern, uint64_t nodes, uint64_t per_node,
               const Make& make) {
  const uint64_t flops = std::max<uint64_t>(pattern.work.flops / nodes, 1);
  const uint64_t step = std::clamp<uint64_t>(builder.flops_per_node() / flops, 1, nodes);
  for (uint64_t first = 0; first < nodes; first += step) {
    const uint64_t end = std::min(first + step, nodes);
    Node node = pattern;
    node.set_params(make(static_cast<uint32_t>(first), static_cast<uint32_t>(end)));
    const uint64_t per_group = local_size(*node.kernel, builder.capabilities());
    node.groups = {groups_for(builder, ((end - first) * per_node + per_group - 1) / per_group), 1,
                   1};
    node.work.bytes = pattern.work.bytes * (end - first) / nodes;
    node.work.flops = flops * (end - first);
    builder.add(std::move(node));
  }
}

}  // namespace

Tensor edge_softmax(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                    const EdgeList& graph, const EdgeScore& score) {
  const Refuse refuse{builder, "edge_softmax"};
  check_graph(refuse, graph);
  const uint64_t columns = uint64_t{score.heads} * score.size;
  if (columns == 0) refuse("no heads, or heads without columns", "give one or more");
  check_columns(refuse, "queries", q, columns);
  check_columns(refuse, "keys", k, columns);
  if (q.tensor.shape.rows() != graph.nodes())
    refuse(fmt::format("{} queries for {} nodes", q.tensor.shape.rows(), graph.nodes()),
           "give a query for each node");
  const bool takes_vector =
      score.score == AttentionScore::kAdditive || score.score == AttentionScore::kLeaky;
  if (takes_vector != score.vector.has_value() ||
      (takes_vector && !fits(*score.vector, columns, graph.tensor)))
    refuse("additive and leaky scores have a vector beside the edges, others none",
           "give (heads, size) numbers to those");
  const Tensor y = builder.activation({graph.edges(), score.heads});
  for (const Tensor& tensor : {q.tensor, k.tensor, graph.tensor, y}) check_size(refuse, tensor);

  Node node;
  node.kernel = &builder.select({Op::kEdgeSoftmax, {}, kAnyShape});
  node.buffers = {{q.tensor, Access::kRead},
                  {k.tensor, Access::kRead},
                  {graph.tensor, Access::kRead},
                  {y, Access::kWrite}};
  node.constants = {{GRAPH_HEADS, score.heads},
                    {GRAPH_SIZE, score.size},
                    {GRAPH_SCORE, static_cast<uint32_t>(score.score)}};
  // Each key counts as read once at most; edges and their weights count once.
  node.work.bytes = 4 * (graph.nodes() * columns + k.tensor.shape.rows() * columns + graph.nodes() +
                         graph.edges() * (1 + uint64_t{score.heads}));
  node.work.flops = graph.edges() * (columns * (takes_vector ? 4 : 2) + 3 * score.heads);
  add_nodes(builder, node, graph.nodes(), score.heads, [&](uint32_t first, uint32_t end) {
    return shader::EdgeSoftmaxParams{first,
                                     end,
                                     graph.sources.count,
                                     static_cast<uint32_t>(k.tensor.shape.rows()),
                                     graph.offsets.word,
                                     graph.sources.word,
                                     score.vector ? score.vector->word : 0,
                                     static_cast<uint32_t>(q.tensor.shape.columns()),
                                     q.first,
                                     static_cast<uint32_t>(k.tensor.shape.columns()),
                                     k.first,
                                     score.scale,
                                     score.leaky_slope};
  });
  return y;
}

Tensor edge_sum(ProgramBuilder& builder, const Tensor& weights, const HeadColumns& v,
                const EdgeList& graph, uint32_t size, bool averaged) {
  const Refuse refuse{builder, "edge_sum"};
  check_graph(refuse, graph);
  if (weights.type != DataType::kF32 || weights.shape.rank() != 2 ||
      weights.shape[0] != graph.edges() || weights.shape[1] == 0 || size == 0)
    refuse(fmt::format("weights are {} {} for {} edges, heads have {} columns",
                       name_of(weights.type), weights.shape.to_string(), graph.edges(), size),
           "give (edges, heads) f32, and a column or more");
  const auto heads = static_cast<uint32_t>(weights.shape[1]);
  const uint64_t columns = uint64_t{heads} * size;
  check_columns(refuse, "values", v, columns);
  const Tensor y = builder.activation({graph.nodes(), averaged ? size : columns});
  for (const Tensor& tensor : {weights, v.tensor, graph.tensor, y}) check_size(refuse, tensor);

  Node node;
  node.kernel = &builder.select({Op::kEdgeSum, {}, kAnyShape});
  node.buffers = {{weights, Access::kRead},
                  {v.tensor, Access::kRead},
                  {graph.tensor, Access::kRead},
                  {y, Access::kWrite}};
  node.constants = {{GRAPH_HEADS, heads}, {GRAPH_SIZE, size}, {GRAPH_AVERAGED, averaged ? 1u : 0u}};
  node.work.bytes = 4 * (graph.nodes() + graph.edges() + v.tensor.shape.rows() * columns) +
                    weights.bytes() + y.bytes();
  node.work.flops = 2 * graph.edges() * columns;
  add_nodes(builder, node, graph.nodes(), y.shape[1], [&](uint32_t first, uint32_t end) {
    return shader::EdgeSumParams{first,
                                 end,
                                 graph.sources.count,
                                 static_cast<uint32_t>(v.tensor.shape.rows()),
                                 graph.offsets.word,
                                 graph.sources.word,
                                 static_cast<uint32_t>(v.tensor.shape.columns()),
                                 v.first};
  });
  return y;
}

}  // namespace mulciber
