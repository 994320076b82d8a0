// Attention over many heads with an online softmax, and attention maps: every score, mask and
// pattern that docs/reference/attention.md lists, under one set of options.
#pragma once

#include <optional>

#include "mulciber/attention.h"
#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// Columns [first, first + heads * head_size) of a (rows, length, columns) tensor, head after head.
struct HeadColumns {
  Tensor tensor;
  uint32_t first = 0;
};

/// The arrays of control that attention reads.
struct AttentionControl {
  Tensor tensor;  // u32
  /// Keys that a row may see, minus key_count_extra: one number for all rows of keys, or one for
  /// each.
  std::optional<ControlArray<uint32_t>> key_counts;
  uint32_t key_count_extra = 0;
  /// (q rows, context): row of the cache that holds key t of a q row.
  std::optional<ControlArray<uint32_t>> ancestry;
  /// (rows of keys, pages of each): the pages that hold a row's keys and values, in order. Keys and
  /// values are then (pages, positions of a page, ...), the pool of all rows.
  std::optional<ControlArray<uint32_t>> pages;
  /// (heads), factors of each head's output; with AttentionOptions::sinks (2, heads): the factors,
  /// then the logits of the sinks.
  std::optional<ControlArray<float>> head_mask;
  std::optional<ControlArray<float>> bias;        // see AttentionOptions::bias
  std::optional<ControlArray<uint32_t>> pattern;  // see KeyPattern
  /// One bit per position, 32 in a word: the tokens that see all and that all see.
  std::optional<ControlArray<uint32_t>> globals;
  std::optional<ControlArray<float>> score_vector;  // (heads, head_size): v of the additive scores
  /// (rows, q_len, heads), for AttentionCenter::kPredicted.
  std::optional<ControlArray<float>> centers;
  /// (rows of keys, heads), zeros before and after: lets workgroups share long keys.
  std::optional<ControlArray<uint32_t>> split_counters;
};

/// Local attention: weights fall off from a center by exp(-distance^2 / (2 sigma^2)), and are not
/// normalized again. Source: Luong et al. 2015, arXiv:1508.04025, section 3.2.
enum class AttentionCenter : uint32_t {
  kNone = 0,
  kPosition = 1,   // local-m: the position of the query
  kPredicted = 2,  // local-p: number of keys * sigmoid(centers[row, query, head])
};

/// Lists the keys that queries see, block by block; keys outside the lists cost nothing. The
/// pattern in control is query_blocks + 1 words w, then lists. Queries at positions [b *
/// block_queries, (b + 1) * block_queries) see the key blocks whose numbers are words [w[b], w[b +
/// 1]) of the pattern, in ascending order; a key block is block_keys keys. With blocks of 1 by 1
/// the pattern is an adjacency list. Queries past the last block see nothing. layers/key_pattern.h
/// makes common patterns.
struct KeyPattern {
  uint32_t block_queries = 0;  // 0: no pattern
  uint32_t block_keys = 0;
  uint32_t query_blocks = 0;
};

/// The bias of the scaled and capped scores; its floats are in control.
enum class AttentionBias : uint32_t {
  kNone = 0,
  /// (heads, 2 * bias_span + 1): by position of the key minus position of the query, clamped to
  /// +-bias_span. T5's buckets, written out, and ALiBi.
  kRelative = 1,
  /// (1 or rows, 1 or heads, q_len, kv_len); -infinity, or anything below -1e30, hides a key.
  kMask = 4,
  kMaskPerRow = 5,
  kMaskPerHead = 6,
  kMaskPerRowAndHead = 7,
};

struct AttentionOptions {
  uint32_t heads = 1;
  uint32_t kv_heads = 1;    // divides heads; heads/kv_heads heads of queries share keys
  uint32_t head_size = 0;   // for queries and keys, up to 256
  uint32_t value_size = 0;  // for values, up to 256
  float scale = 1;          // factor of q k^T; usually head_size^-0.5
  /// Position of a row's first query among the keys; may be negative. None: the last query is at
  /// the last counted key, position = key count - q_len. The count may exceed kv_len (a chunk
  /// padded on the right).
  std::optional<int32_t> query_offset;
  /// A query sees only keys up to its own position.
  bool causal = false;
  /// A query sees only keys less than `window` away from its position; other keys cost nothing. 0:
  /// all keys.
  uint32_t window = 0;
  /// Scores become soft_cap * tanh(score / soft_cap). 0: no cap. Source: Gemma 2, arXiv:2408.00118.
  float soft_cap = 0;
  AttentionBias bias = AttentionBias::kNone;
  uint32_t bias_span = 0;  // for kRelative
  AttentionScore score = AttentionScore::kDot;
  float leaky_slope = 0.2f;  // for AttentionScore::kLeaky
  /// A logit per head, in control, joins the softmax without a value: probabilities add up to less
  /// than 1. Not allowed with hard attention or a center. Source: Agarwal et al. 2025 (gpt-oss),
  /// arXiv:2508.10925; Xiao et al. 2023, arXiv:2309.17453.
  bool sinks = false;
  /// The first key with the largest score gets weight 1. Source: Xu et al. 2015, arXiv:1502.03044.
  bool hard = false;
  AttentionCenter center = AttentionCenter::kNone;
  float center_sigma = 0;  // 0: weights do not fall off
  float center_reach = 0;  // kPredicted hides keys farther from the center; 0: none
  KeyPattern pattern;
  /// With a window, global tokens (in control) see all tokens and all tokens see them. Source:
  /// Longformer, arXiv:2004.05150.
  bool global_tokens = false;
  /// q rows per row of keys (beams that share one encoded sentence).
  uint32_t rows_per_kv = 1;
  std::optional<AttentionControl> control;  // none: every row sees all keys
  /// Number of parts into which matrix-unit rows split the keys of a tile of queries, one workgroup
  /// for each (ops/attention_combine.h). None: the device decides.
  std::optional<uint32_t> key_parts;
};

/// Whether two handles name the same tensor.
bool same_storage(const Tensor& a, const Tensor& b);

/// Source: Vaswani et al. 2017, arXiv:1706.03762; online softmax: Milakov and Gimelshein 2018,
/// arXiv:1805.02867.
/// q: (rows, q_len, ...), k and v: columns of one (rows / rows_per_kv, kv_len, ...) tensor (with
/// ancestry: (rows, context, ...), with pages: (pages, positions of a page, ...)), of q's type, or
/// f16 or q8_0 where q is f32;
/// result: (rows, q_len, heads * value_size), of q's type.
/// A query that sees no key gives zeros; so do all queries where kv_len is 0. Throws ShapeError
/// naming the layer.
Tensor attention(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                 const HeadColumns& v, const AttentionOptions& options);

/// The result for kv_len 0: zeros, without a tensor of keys.
Tensor attention_of_nothing(ProgramBuilder& builder, const Tensor& q,
                            const AttentionOptions& options);

/// The probabilities that attention() computes, before head_mask: (rows, heads, q_len, kv_len) f32,
/// zeros where masked. Throws ShapeError where kv_len is 0.
Tensor attention_map(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                     const AttentionOptions& options);

}  // namespace mulciber
