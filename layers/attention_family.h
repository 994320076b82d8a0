// One description of every attention in docs/reference/attention.md: score, selection, roles and
// heads. It becomes matrix products and one fused kernel, the best one for the device.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "layers/linear.h"
#include "ops/attention.h"

namespace mulciber {

/// Memory-compressed attention: `stride` neighbouring positions become one key and one value, by
/// convolutions over keys and values whose kernel length is the stride. Scores and memory shrink by
/// the factor `stride`. Source: Liu et al. 2018, arXiv:1801.10198 (stride 3).
struct KeyCompression {
  uint32_t stride = 3;
  /// (columns after, stride * columns before): tap t of the kernel reads columns [t * before, (t +
  /// 1) * before). convolution_rows() converts a convolution's weight to this form.
  Linear keys, values;
};

/// The kinds of attention differ in the projections before the score:
///   dot, scaled dot        nothing
///   general, q^T W k       query: W^T
///   low rank               query: V^T, key: U^T
///   additive               query: W with bias b, key: U, vector: v; options.score kAdditive
///   concat, v.tanh(W[q;k]) like additive: W is cut into its columns for q and for k
///   Gaussian kernel        nothing; kDistance, scale 1 / (2 sigma^2)
///   graph (GAT)            query, key: one number a head (heads of size 1), vector: ones; kLeaky,
///                          listed keys
/// Heads can be projected separately: a weight per head is a weight of all heads with zeros
/// elsewhere (block_diagonal()).
struct AttentionFamily {
  AttentionOptions options;     // sizes after projection; its control is for masks and patterns
  std::optional<Linear> query;  // (heads * head_size, columns of q)
  std::optional<Linear> key;    // (kv_heads * head_size, columns of k)
  std::optional<Linear> value;  // (kv_heads * value_size, columns of v)
  /// Applied before `key` and `value`. The length of k and v must be a multiple of the stride. Key
  /// positions then count compressed keys, so a mask replaces options.causal: see
  /// compressed_causal_mask().
  std::optional<KeyCompression> compression;
  std::optional<Tensor> vector;  // (heads, head_size) f32: v of the additive scores
  /// Luong's local-p: p = keys * sigmoid(v_p . tanh(W_p q)), computed from the unprojected query.
  std::optional<Linear> center_hidden;  // W_p: (heads * n, columns of q)
  std::optional<Linear> center_out;     // v_p: (heads, heads * n)

  /// q: (rows, q_len, ...), k, v: (rows / rows_per_kv, kv_len, ...), as columns of one tensor or of
  /// two. Result: (rows, q_len, heads * value_size); with `map` also the probabilities, (rows,
  /// heads, q_len, kv_len) f32. Roles: self (q, k, v of one sequence), cross (k, v of another),
  /// key-value memory (k and v of different tensors), pooling (q is one row, used for every row). A
  /// projection reads its whole tensor. Throws ShapeError naming the layer, KernelError when no row
  /// serves.
  Tensor operator()(ProgramBuilder& builder, const HeadColumns& q, const HeadColumns& k,
                    const HeadColumns& v, Tensor* map = nullptr) const;
};

/// Converts weights per head, (heads, out, in), to one weight of all heads: (heads * out, heads *
/// in), with zeros elsewhere.
std::vector<float> block_diagonal(std::span<const float> weights, uint32_t heads, uint32_t out,
                                  uint32_t in);

/// Converts a 1-D convolution's weight, (out, in, taps) as in PyTorch, to KeyCompression's form:
/// (out, taps * in).
std::vector<float> convolution_rows(std::span<const float> weight, uint32_t out, uint32_t in,
                                    uint32_t taps);
/// Mask for AttentionBias::kMask: (q_len, keys / stride) floats: 0 where query i, at position
/// first_position + i, sees a compressed key because all of the key's positions are at or before
/// the query's; -infinity elsewhere. Queries at the first stride - 1 positions see no key and give
/// zeros.
std::vector<float> compressed_causal_mask(uint32_t q_len, uint32_t keys, uint32_t stride,
                                          int32_t first_position = 0);

/// The arguments of T5's bias by distance, written out for AttentionBias::kRelative with bias_span
/// = max_distance: (heads, 2 * max_distance + 1) floats from the table (buckets, heads). Source:
/// Raffel et al. 2020, arXiv:1910.10683.
struct T5Buckets {
  uint32_t buckets = 32, max_distance = 128;
  bool bidirectional = true;
};
std::vector<float> t5_bias(std::span<const float> table, uint32_t heads, const T5Buckets& t5);
/// The bucket of a key `distance` after (or, negative, before) the query.
uint32_t t5_bucket(int32_t distance, const T5Buckets& t5);

/// ALiBi for AttentionBias::kRelative: -slope * |distance| up to `span`, which bounds all
/// distances.
/// Source: Press et al. 2022, arXiv:2108.12409.
std::vector<float> alibi_bias(std::span<const float> slopes, uint32_t span);
/// ALiBi's slopes: 2^(-8 i / n) where the number of heads n is a power of two; other numbers add
/// every second slope of 2 n heads.
std::vector<float> alibi_slopes(uint32_t heads);

}  // namespace mulciber
