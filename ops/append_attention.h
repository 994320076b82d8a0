// Attention of one position that begins with what rope_append() or append_cache() does.
#pragma once

#include <optional>

#include "ops/rope.h"

namespace mulciber {

/// Whether one dispatch appends and attends here: there is one position a row, and the row that
/// selection takes for it does both. rope: as append_attention() gets it.
bool appends_in_attention(const ProgramBuilder& builder, const Tensor& qkv, const Tensor& cache,
                          const std::optional<RopeOptions>& rope, const AttentionOptions& options);

/// attention() of queries over the cache, after rope_append(), or without `rope` append_cache(), of
/// queries, keys and values: in one dispatch, to the same bits, where appends_in_attention() says
/// so; else in several.
/// qkv: (rows, 1, (heads + 2 * kv_heads) * head_size), which is undefined afterwards; cache: (rows,
/// context, 2 * kv_heads * head_size), f16, or q8_0 where qkv is f32. options.control counts the
/// keys before the position, plus one (key_count_extra), and rope->positions is the same array.
/// Result: (rows, 1, heads * head_size), of qkv's type. Throws ShapeError naming the layer.
Tensor append_attention(ProgramBuilder& builder, const Tensor& qkv, const Tensor& cache,
                        const std::optional<RopeOptions>& rope, const AttentionOptions& options);

}  // namespace mulciber
