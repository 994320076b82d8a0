// An attention problem: its checked sizes, and the facts by which a kernel row is selected.
#pragma once

#include <initializer_list>

#include "ops/attention.h"
#include "runtime/kernel.h"

namespace mulciber {

/// Positions and windows are below this bound: sums of them stay below 2^31.
constexpr uint32_t kMaxWindow = 1u << 29;

/// Sizes of a checked attention problem.
struct AttentionSizes {
  uint64_t rows, q_len, kv_rows, kv_len;
};

/// Number of positions in each of `rows` rows of a cache, contiguous or paged. Throws ShapeError
/// naming the layer where rows have different numbers of pages, pages have no positions, or the
/// array of pages is not in control.
uint64_t cache_length(const ProgramBuilder& builder, const Tensor& cache, uint64_t rows,
                      const Tensor& control, const std::optional<ControlArray<uint32_t>>& pages);
AttentionSizes sizes_of(const ProgramBuilder& builder, const Tensor& q, const Tensor& kv,
                        const AttentionOptions& options);

/// Throws ShapeError naming the layer where `part` has too few columns for `heads` heads.
void check_head_columns(const ProgramBuilder& builder, const char* what, const HeadColumns& part,
                        uint64_t heads, uint64_t head_size);

/// Checks an attention problem. Throws ShapeError naming the layer where queries, keys, options and
/// control disagree, or a head has more than `most` columns.
AttentionSizes check_attention(const ProgramBuilder& builder, const HeadColumns& q,
                               const HeadColumns& k, const AttentionOptions& options,
                               uint32_t most);

/// Whether every tile of `tile` queries of the list lies within one block of a pattern.
bool whole_tiles(const AttentionOptions& options, uint64_t tile);

/// The facts of a problem. extents: every size, stride and offset that kernels read by vectors.
ShapeFacts attention_facts(std::initializer_list<uint64_t> extents, const AttentionOptions& options,
                           const AttentionSizes& sizes);

/// Work that remains after the masks known at build time: keys that some query sees, and pairs of
/// query and key. Key counts in control are known only at run time, so they mask nothing here.
struct KeptKeys {
  uint64_t keys = 0, pairs = 0;
};

KeptKeys kept_keys(const AttentionOptions& options, const AttentionSizes& sizes);

/// Operations per column of a query and a key. A tanh counts as many as shaders/include/tanh.glsl
/// has, with its division as one.
uint64_t score_operations(AttentionScore score);

}  // namespace mulciber
