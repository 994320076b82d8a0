// Nodes of attention for a selected kernel row: common code of attention, appending attention,
// latent attention and the map.
#pragma once

#include <optional>

#include "ops/attention.h"
#include "ops/attention_problem.h"
#include "ops/rope.h"
#include "shaders/attention.h"

namespace mulciber {

/// Fills the parameters. pack: heads in one list of queries.
shader::AttentionParams params_of(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                                  const AttentionOptions& options, const AttentionSizes& sizes,
                                  uint32_t pack);

struct NodeTensors {
  const Tensor &q, &kv, &result;
  std::optional<Tensor> partials = {};  // for rows that split the keys
  const RopeOptions* rope = nullptr;    // for rows that append first
  uint32_t key_parts = 1;               // above 1, partial sums take the result's place
};

/// Whether a kernel row writes keys and values into the cache itself.
bool appends(const Kernel& kernel);

/// One node, or several over rows of keys where a tensor does not fit a descriptor.
/// tiles: workgroups over the list of queries of one row of keys, with `pack` heads in a list.
/// row_work: work for one row of keys.
void add_nodes(ProgramBuilder& builder, const Kernel& kernel, const NodeTensors& tensors,
               shader::AttentionParams params, const AttentionOptions& options,
               const AttentionSizes& sizes, uint64_t tiles, uint32_t pack, const Work& row_work);

/// The sizes that selection sees in place of the real numbers of rows.
AttentionSizes selected_sizes(const ProgramBuilder& builder, AttentionSizes sizes);

ShapeFacts facts_of(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                    const AttentionOptions& options, const AttentionSizes& sizes);

/// Calls check_attention() and checks the values. most: columns of a head.
AttentionSizes check_with_values(const ProgramBuilder& builder, const HeadColumns& q,
                                 const HeadColumns& k, const HeadColumns& v,
                                 const AttentionOptions& options, uint32_t most = MAX_HEAD_SIZE);

/// Adds attention by a kernel row of either op. `rope`: for rows that append first.
Tensor attention_by(const Kernel& kernel, ProgramBuilder& builder, const HeadColumns& q,
                    const HeadColumns& k, const HeadColumns& v, const AttentionOptions& options,
                    const AttentionSizes& sizes, const RopeOptions* rope);

}  // namespace mulciber
