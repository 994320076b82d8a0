/* Mulciber for C: graph attention networks: nodes attend to their neighbours alone. The rules are
 * those of mulciber/graph_attention.h. C11. */
#ifndef MULCIBER_C_GRAPH_ATTENTION_H
#define MULCIBER_C_GRAPH_ATTENTION_H

#include "mulciber/c/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A directed graph in compressed sparse rows: node n attends to sources[offsets[n]] to
 * sources[offsets[n + 1]]. */
typedef struct MulciberGraph {
  uint32_t size;
  uint32_t node_count, edge_count;
  const uint32_t* offsets; /* node_count + 1, ascending from 0 to edge_count */
  const uint32_t* sources; /* edge_count */
} MulciberGraph;

typedef struct MulciberGraphInfo {
  uint32_t size;
  MulciberBool both_ways;  /* every edge counts in both directions */
  MulciberBool self_loops; /* add a self-loop to nodes that have none */
} MulciberGraphInfo;

/* Makes a graph of edges, from the node that is attended to (source) to the node that attends
 * (target); sources are in ascending order for each node. Duplicate edges count twice. info: may be
 * NULL. MULCIBER_ERROR_SETTING names an edge whose node is not below `nodes`. */
MULCIBER_API MulciberStatus mulciber_make_graph(MulciberContext* context, uint32_t nodes,
                                                uint32_t edges, const uint32_t* sources,
                                                const uint32_t* targets,
                                                const MulciberGraphInfo* info,
                                                MulciberResult** result,
                                                const MulciberGraph** graph);

/* Projections have weights of (out, in) and read all columns of a node. */
typedef struct MulciberGraphAttentionDescription {
  uint32_t size;
  uint32_t heads;                  /* 0: 1 */
  const MulciberProjection* query; /* for the node that attends: (heads * score columns, in) */
  const MulciberProjection* key;   /* for its neighbours */
  const MulciberProjection* value; /* for its neighbours: (heads * size, in); NULL: the keys */
  MulciberAttentionScore score;    /* graph attention has MULCIBER_SCORE_LEAKY */
  float scale;                     /* 0: (score columns)^-0.5 for MULCIBER_SCORE_DOT, else 1 */
  const float* score_vector;       /* v for ADDITIVE and LEAKY: heads * score columns */
  uint32_t vector_count;
  float leaky_slope;     /* 0: 0.2 */
  MulciberBool averaged; /* heads are averaged instead of concatenated */
} MulciberGraphAttentionDescription;

/* Describes the first graph attention network, see gat_description(). weight: (heads * size, in);
 * target and source: heads * size numbers each. */
MULCIBER_API MulciberStatus
mulciber_describe_gat(MulciberContext* context, const MulciberFloatArray* weight, uint32_t heads,
                      const float* target, const float* source, MulciberResult** result,
                      const MulciberGraphAttentionDescription** description);

/* One layer over one graph on a device. It keeps weights, edges and the program of the last call
 * there. */
typedef struct MulciberGraphAttention MulciberGraphAttention;

/* Copies the description's arrays and the graph to the device. MULCIBER_ERROR_SETTING when shapes
 * disagree or the graph is malformed. */
MULCIBER_API MulciberStatus
mulciber_create_graph_attention(MulciberContext* context, MulciberDevice* device,
                                const MulciberGraphAttentionDescription* description,
                                const MulciberGraph* graph, MulciberGraphAttention** layer);
MULCIBER_API void mulciber_destroy_graph_attention(MulciberGraphAttention* layer);

/* See mulciber_trim_attention(). */
MULCIBER_API MulciberStatus mulciber_trim_graph_attention(MulciberContext* context,
                                                          MulciberGraphAttention* layer,
                                                          uint64_t* freed);

/* Computes the layer; submits and waits. nodes: the nodes that attend, (nodes, in). neighbors:
 * (neighbours, in), which the graph's sources index; NULL: the nodes. output: (nodes, heads *
 * size), or (nodes, size) if averaged. weights: (edges, heads), in the order of the graph's edges;
 * may be NULL. A node without edges gives zeros. */
MULCIBER_API MulciberStatus mulciber_compute_graph_attention(
    MulciberContext* context, MulciberGraphAttention* layer, const MulciberFloatArray* nodes,
    const MulciberFloatArray* neighbors, MulciberResult** result, const MulciberFloatArray** output,
    const MulciberFloatArray** weights);

#ifdef __cplusplus
}
#endif

#endif
