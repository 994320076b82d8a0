// What an attention asks for: checked sizes, and the facts by which a kernel is selected.
#pragma once

#include <initializer_list>

#include "ops/attention.h"
#include "runtime/kernel.h"

namespace mulciber {

/// Positions and windows are below it: sums of them stay below 2^31.
constexpr uint32_t kMaxWindow = 1u << 29;

/// Sizes of a checked problem.
struct AttentionSizes {
  uint64_t rows, q_len, kv_rows, kv_len;
};

/// Positions of each of `rows` rows of a cache, all of it or in pages. Throws ShapeError naming the
/// layer where the pages are not the same number for every row, are of no positions, or do not
/// stand in control.
uint64_t cache_length(const ProgramBuilder& builder, const Tensor& cache, uint64_t rows,
                      const Tensor& control, const std::optional<ControlArray<uint32_t>>& pages);
AttentionSizes sizes_of(const ProgramBuilder& builder, const Tensor& q, const Tensor& kv,
                        const AttentionOptions& options);

/// Throws ShapeError naming the layer where `heads` heads do not stand in the columns of `part`.
void check_head_columns(const ProgramBuilder& builder, const char* what, const HeadColumns& part,
                        uint64_t heads, uint64_t head_size);

/// Throws ShapeError naming the layer where queries, keys, options and control disagree, or a head
/// has more than `most` columns.
AttentionSizes check_attention(const ProgramBuilder& builder, const HeadColumns& q,
                               const HeadColumns& k, const AttentionOptions& options,
                               uint32_t most);

/// Whether no tile of `tile` queries of the list reaches into two blocks of a pattern.
bool whole_tiles(const AttentionOptions& options, uint64_t tile);

/// extents: every size, stride and offset that kernels read by vectors.
ShapeFacts attention_facts(std::initializer_list<uint64_t> extents, const AttentionOptions& options,
                           const AttentionSizes& sizes);

/// What masks that are known when a program is built leave of a row's keys: keys that some query
/// sees, and pairs of query and key. What control counts at run time is not known, so all keys
/// count.
struct KeptKeys {
  uint64_t keys = 0, pairs = 0;
};

KeptKeys kept_keys(const AttentionOptions& options, const AttentionSizes& sizes);

/// Operations on a column of a query and a key. A tanh counts as those of
/// shaders/include/tanh.glsl, its division as one.
uint64_t score_operations(AttentionScore score);

}  // namespace mulciber
