// Nodes of attention by a row that was selected: what attention, attention that appends, latent
// attention and the map have in common.
#pragma once

#include <optional>

#include "ops/attention.h"
#include "ops/attention_problem.h"
#include "ops/rope.h"
#include "shaders/attention.h"

namespace mulciber {

/// pack: heads in one list of queries.
shader::AttentionParams params_of(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                                  const AttentionOptions& options, const AttentionSizes& sizes,
                                  uint32_t pack);

struct NodeTensors {
  const Tensor &q, &kv, &result;
  std::optional<Tensor> partials = {};  // of rows that split the keys
  const RopeOptions* rope = nullptr;    // of rows that append first
  uint32_t key_parts = 1;               // above 1, what they find takes the place of the result
};

/// Whether a row writes keys and values into the cache itself.
bool appends(const Kernel& kernel);

/// One node, or several over rows of keys where a tensor does not fit a descriptor.
/// tiles: workgroups over the list of queries of a row of keys, `pack` heads each. row_work: of one
/// row of keys.
void add_nodes(ProgramBuilder& builder, const Kernel& kernel, const NodeTensors& tensors,
               shader::AttentionParams params, const AttentionOptions& options,
               const AttentionSizes& sizes, uint64_t tiles, uint32_t pack, const Work& row_work);

/// What selection is to see of the rows.
AttentionSizes selected_sizes(const ProgramBuilder& builder, AttentionSizes sizes);

ShapeFacts facts_of(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                    const AttentionOptions& options, const AttentionSizes& sizes);

/// check_attention(), and what values must be. most: columns of a head.
AttentionSizes check_with_values(const ProgramBuilder& builder, const HeadColumns& q,
                                 const HeadColumns& k, const HeadColumns& v,
                                 const AttentionOptions& options, uint32_t most = MAX_HEAD_SIZE);

/// Attention by a row of either op; `rope`: of rows that append first.
Tensor attention_by(const Kernel& kernel, ProgramBuilder& builder, const HeadColumns& q,
                    const HeadColumns& k, const HeadColumns& v, const AttentionOptions& options,
                    const AttentionSizes& sizes, const RopeOptions* rope);

}  // namespace mulciber
