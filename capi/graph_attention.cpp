// C functions for graph attention.
#include "mulciber/c/graph_attention.h"

#include <algorithm>

#include "capi/attention_arrays.h"
#include "capi/handles.h"
#include "mulciber/graph_attention.h"

struct MulciberGraphAttention {
  mulciber::GraphAttentionLayer layer;
};

namespace mulciber::c {
namespace {

struct ShownGraph {
  Graph found;
  MulciberGraph shown = {};
};

/// A description, and its form in C, which points into this object.
struct ShownGraphAttention {
  GraphAttentionDescription found;
  MulciberFloatArray weights[3] = {};
  MulciberProjection projections[3] = {};
  MulciberGraphAttentionDescription shown = {};

  const MulciberProjection* show(int i, const Projection& projection) {
    weights[i] = shown_array(projection.weight);
    projections[i] = {.size = sizeof(MulciberProjection),
                      .bias_count = static_cast<uint32_t>(projection.bias.size()),
                      .bias = projection.bias.data(),
                      .weight = &weights[i]};
    return &projections[i];
  }
  const MulciberGraphAttentionDescription* show() {
    shown = {.size = sizeof(MulciberGraphAttentionDescription),
             .heads = found.heads,
             .query = show(0, found.query),
             .key = show(1, found.key),
             .value = found.value ? show(2, *found.value) : nullptr,
             .score = static_cast<MulciberAttentionScore>(found.score),
             .scale = found.scale.value_or(0.0f),
             .score_vector = found.score_vector.data(),
             .vector_count = static_cast<uint32_t>(found.score_vector.size()),
             .leaky_slope = found.leaky_slope,
             .averaged = found.averaged};
    return &shown;
  }
};

GraphAttentionDescription graph_attention_description(
    const MulciberGraphAttentionDescription* given) {
  const auto from = of_any_version(given, "MulciberGraphAttentionDescription");
  GraphAttentionDescription to = {.heads = std::max(from.heads, 1u),
                                  .query = projection_of(from.query, "query"),
                                  .key = projection_of(from.key, "key"),
                                  .value = optional_projection(from.value, "value"),
                                  .score = attention_score(from.score)};
  if (from.scale != 0) to.scale = from.scale;
  to.score_vector = copied_numbers(from.score_vector, from.vector_count, "score_vector");
  if (from.leaky_slope != 0) to.leaky_slope = from.leaky_slope;
  to.averaged = from.averaged != 0;
  return to;
}

Graph graph_of(const MulciberGraph* from) {
  const auto graph = of_any_version(from, "MulciberGraph");
  const uint32_t* offsets = &given_to(graph.offsets, "offsets");
  return {{offsets, offsets + size_t{graph.node_count} + 1},
          copied_numbers(graph.sources, graph.edge_count, "sources")};
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_make_graph(MulciberContext* context, uint32_t nodes, uint32_t edges,
                                   const uint32_t* sources, const uint32_t* targets,
                                   const MulciberGraphInfo* from, MulciberResult** result,
                                   const MulciberGraph** graph) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(graph, "graph") = nullptr;
    const auto info = optional_of_any_version(from, "MulciberGraphInfo");
    std::vector<GraphEdge> list;
    for (uint32_t i = 0; i < edges; ++i)
      list.push_back({element_of(sources, i, "sources"), element_of(targets, i, "targets")});
    auto shown = std::make_shared<ShownGraph>();
    shown->found = make_graph(
        nodes, list, {.both_ways = info.both_ways != 0, .self_loops = info.self_loops != 0});
    shown->shown = {.size = sizeof(MulciberGraph),
                    .node_count = nodes,
                    .edge_count = static_cast<uint32_t>(shown->found.sources.size()),
                    .offsets = shown->found.offsets.data(),
                    .sources = shown->found.sources.data()};
    *result = new MulciberResult{shown};
    *graph = &shown->shown;
  });
}

MulciberStatus mulciber_describe_gat(MulciberContext* context, const MulciberFloatArray* weight,
                                     uint32_t heads, const float* target, const float* source,
                                     MulciberResult** result,
                                     const MulciberGraphAttentionDescription** description) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(description, "description") = nullptr;
    const FloatArray matrix = float_array(weight, "weight");
    const float* of_target = &given_to(target, "target");
    const float* of_source = &given_to(source, "source");
    const uint64_t rows = matrix.values.empty() ? 0 : matrix.shape[0];
    auto shown = std::make_shared<ShownGraphAttention>();
    shown->found = gat_description(matrix, heads, {of_target, of_target + rows},
                                   {of_source, of_source + rows});
    *result = new MulciberResult{shown};
    *description = shown->show();
  });
}

MulciberStatus mulciber_create_graph_attention(MulciberContext* context, MulciberDevice* device,
                                               const MulciberGraphAttentionDescription* description,
                                               const MulciberGraph* graph,
                                               MulciberGraphAttention** layer) {
  return guarded(context, [&] {
    given_to(layer, "layer") = nullptr;
    *layer = new MulciberGraphAttention{
        GraphAttentionLayer(given_to(device, "device").device,
                            graph_attention_description(description), graph_of(graph))};
  });
}

void mulciber_destroy_graph_attention(MulciberGraphAttention* layer) { delete layer; }

MulciberStatus mulciber_trim_graph_attention(MulciberContext* context,
                                             MulciberGraphAttention* layer, uint64_t* freed) {
  return guarded(context, [&] {
    if (freed) *freed = 0;
    const uint64_t bytes = given_to(layer, "layer").layer.trim();
    if (freed) *freed = bytes;
  });
}

MulciberStatus mulciber_compute_graph_attention(
    MulciberContext* context, MulciberGraphAttention* layer, const MulciberFloatArray* nodes,
    const MulciberFloatArray* neighbors, MulciberResult** result, const MulciberFloatArray** output,
    const MulciberFloatArray** weights) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(output, "output") = nullptr;
    if (weights) *weights = nullptr;
    GraphAttentionLayer& by = given_to(layer, "layer").layer;
    const FloatArray x = float_array(nodes, "nodes");
    give_attention_result(neighbors ? by(x, float_array(neighbors, "neighbors")) : by(x), result,
                          output, weights);
  });
}
