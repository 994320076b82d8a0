// Attention of one position, fused with the write of its keys and values into the cache.
#pragma once

#include <optional>

#include "ops/rope.h"

namespace mulciber {

/// Whether one dispatch appends and attends: each row has one position, and selection finds a
/// kernel row that does both. rope: the argument of append_attention().
bool appends_in_attention(const ProgramBuilder& builder, const Tensor& qkv, const Tensor& cache,
                          const std::optional<RopeOptions>& rope, const AttentionOptions& options);

/// Appends keys and values to the cache by rope_append(), or without `rope` by append_cache(), and
/// returns attention() of the queries over the cache: in one dispatch where appends_in_attention()
/// says so, else in several, with bitwise equal results.
/// qkv: (rows, 1, (heads + 2 * kv_heads) * head_size), which is undefined afterwards; cache: (rows,
/// context, 2 * kv_heads * head_size), f16, or q8_0 where qkv is f32. options.control counts the
/// keys before the position, plus one (key_count_extra), and rope->positions is the same array.
/// Result: (rows, 1, heads * head_size), of qkv's type. Throws ShapeError naming the layer.
Tensor append_attention(ProgramBuilder& builder, const Tensor& qkv, const Tensor& cache,
                        const std::optional<RopeOptions>& rope, const AttentionOptions& options);

}  // namespace mulciber
