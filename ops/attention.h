// Attention over many heads with an online softmax, and its map for reading: every score, mask and
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

/// What attention reads in control.
struct AttentionControl {
  Tensor tensor;  // u32
  /// Keys a row may see, less key_count_extra: of all rows of keys together, or of each.
  std::optional<ControlArray<uint32_t>> key_counts;
  uint32_t key_count_extra = 0;
  /// (q rows, context): row of the cache that holds key t of a q row.
  std::optional<ControlArray<uint32_t>> ancestry;
  /// (rows of keys, pages of each): which pages hold a row's keys and values, in their order. Keys
  /// and values are then (pages, positions of a page, ...), the pool of all rows.
  std::optional<ControlArray<uint32_t>> pages;
  /// (heads), multiplied onto each head's output; with AttentionOptions::sinks (2, heads): these,
  /// then the logits of the sinks.
  std::optional<ControlArray<float>> head_mask;
  std::optional<ControlArray<float>> bias;        // as AttentionOptions::bias says
  std::optional<ControlArray<uint32_t>> pattern;  // as KeyPattern says
  /// A bit per position, 32 a word: tokens that see all and are seen by all.
  std::optional<ControlArray<uint32_t>> globals;
  std::optional<ControlArray<float>> score_vector;  // (heads, head_size): v of the additive scores
  /// (rows, q_len, heads), as AttentionCenter::kPredicted says.
  std::optional<ControlArray<float>> centers;
  /// (rows of keys, heads) zeros, and zero again after: lets workgroups share long keys.
  std::optional<ControlArray<uint32_t>> split_counters;
};

/// Local attention: weights fall off from a center, times exp(-distance^2 / (2 sigma^2)), and are
/// not made to add up to 1 again. Source: Luong et al. 2015, arXiv:1508.04025, section 3.2.
enum class AttentionCenter : uint32_t {
  kNone = 0,
  kPosition = 1,   // local-m: the position of the query
  kPredicted = 2,  // local-p: number of keys * sigmoid(centers[row, query, head])
};

/// The keys that queries look at, block by block; what is not listed costs nothing. In control
/// stand query_blocks + 1 words, then lists: the keys of positions [b * block_queries, (b + 1) *
/// block_queries) are those of the blocks whose numbers stand in words [w[b], w[b + 1]) of the
/// pattern, in ascending order, each of block_keys keys. With blocks of 1 by 1 it is an adjacency
/// list. Positions past the last block see nothing. Makers of common patterns:
/// layers/key_pattern.h.
struct KeyPattern {
  uint32_t block_queries = 0;  // 0: no pattern
  uint32_t block_keys = 0;
  uint32_t query_blocks = 0;
};

/// What is added to the scaled and capped scores; its floats stand in control.
enum class AttentionBias : uint32_t {
  kNone = 0,
  /// (heads, 2 * bias_span + 1): by position of the key less position of the query, which is
  /// clamped to
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
  uint32_t kv_heads = 1;    // divides heads; queries of heads/kv_heads heads share keys
  uint32_t head_size = 0;   // of queries and keys, up to 256
  uint32_t value_size = 0;  // of values, up to 256
  float scale = 1;          // onto q k^T; usually head_size^-0.5
  /// Position among the keys of the first query of a row, of any sign. None: the last query stands
  /// at the last key that is counted, position = key count - q_len. The count may pass kv_len (a
  /// chunk padded on the right).
  std::optional<int32_t> query_offset;
  /// A query sees keys up to its position only.
  bool causal = false;
  /// A query sees keys less than `window` away from its position; keys outside cost nothing. 0:
  /// all.
  uint32_t window = 0;
  /// Scores become soft_cap * tanh(score / soft_cap). 0: they stay. Source: Gemma 2,
  /// arXiv:2408.00118.
  float soft_cap = 0;
  AttentionBias bias = AttentionBias::kNone;
  uint32_t bias_span = 0;  // of kRelative
  AttentionScore score = AttentionScore::kDot;
  float leaky_slope = 0.2f;  // of AttentionScore::kLeaky
  /// A logit of each head, in control, takes part in the softmax and has no value: probabilities
  /// add up to less than 1. Not for hard attention and that around a center. Source: Agarwal et al.
  /// 2025 (gpt-oss), arXiv:2508.10925; Xiao et al. 2023, arXiv:2309.17453.
  bool sinks = false;
  /// The first largest score takes all. Source: Xu et al. 2015, arXiv:1502.03044.
  bool hard = false;
  AttentionCenter center = AttentionCenter::kNone;
  float center_sigma = 0;  // 0: weights do not fall off
  float center_reach = 0;  // of kPredicted: keys farther from the center are hidden; 0: none
  KeyPattern pattern;
  /// With a window: global tokens, in control, see all and are seen by all. Source: Longformer,
  /// arXiv:2004.05150.
  bool global_tokens = false;
  /// q rows per row of keys (beams that share one encoded sentence).
  uint32_t rows_per_kv = 1;
  std::optional<AttentionControl> control;  // none: every row sees all keys
  /// Parts into which rows of matrix units split the keys of a tile of queries, a workgroup each
  /// (ops/attention_combine.h). None: as the device needs it.
  std::optional<uint32_t> key_parts;
};

/// Whether two handles name one and the same tensor.
bool same_storage(const Tensor& a, const Tensor& b);

/// Source: Vaswani et al. 2017, arXiv:1706.03762; online softmax: Milakov and Gimelshein 2018,
/// arXiv:1805.02867.
/// q: (rows, q_len, ...), k and v: columns of one and the same (rows / rows_per_kv, kv_len, ...)
/// tensor (with ancestry: (rows, context, ...), with pages: (pages, positions of a page, ...)), of
/// q's type, or f16 or q8_0 where q is f32;
/// result: (rows, q_len, heads * value_size), of q's type.
/// A query that may see no key gives zeros, as all do where kv_len is 0. Throws ShapeError naming
/// the layer.
Tensor attention(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                 const HeadColumns& v, const AttentionOptions& options);

/// The result where kv_len is 0: zeros, without a tensor of keys.
Tensor attention_of_nothing(ProgramBuilder& builder, const Tensor& q,
                            const AttentionOptions& options);

/// The probabilities attention() uses, before head_mask: (rows, heads, q_len, kv_len) f32, zeros
/// where masked. Throws ShapeError where kv_len is 0.
Tensor attention_map(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                     const AttentionOptions& options);

}  // namespace mulciber
