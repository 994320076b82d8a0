// Attention of every kind on any Vulkan device: a description, arrays in, arrays out. Formulas and
// sources: docs/reference/attention.md. No Vulkan headers are needed. Errors are the types of
// mulciber/error.h; nothing is printed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mulciber/device.h"

namespace mulciber {

/// Numbers and their extents, row-major, outermost first.
struct FloatArray {
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

/// y = x W^T + b of the last dimension. weight: (out, in), or one for each head, which reads that
/// head's part of the columns: (heads, out, in). bias: a number for each column of y, or empty.
struct Projection {
  FloatArray weight;
  std::vector<float> bias = {};
};

/// What becomes of a query and a key before the scale.
enum class AttentionScore : uint32_t {
  kDot = 0,       // q . k
  kAdditive = 1,  // v . tanh(q + k); Bahdanau et al. 2015, arXiv:1409.0473
  kLeaky = 2,     // v . leaky_relu(q + k); graph attention, Brody et al. 2022, arXiv:2105.14491
  kDistance = 3,  // -|q - k|^2; with the scale 1 / (2 sigma^2) Nadaraya-Watson regression
};

/// Adds -slope * |distance| to scores. slopes: one for each head; empty: those of the paper.
/// Source: Press et al. 2022, arXiv:2108.12409.
struct AlibiBias {
  std::vector<float> slopes = {};
};

/// Adds table[bucket of the distance, head] to scores. table: (buckets, heads).
/// Source: Raffel et al. 2020, arXiv:1910.10683.
struct T5Bias {
  FloatArray table;
  uint32_t max_distance = 128;
  bool bidirectional = true;  // false: keys ahead of the query count as at the query
};

/// With AttentionDescription::window: tokens that see all keys, and whose keys all queries see.
/// Source: Beltagy et al. 2020, arXiv:2004.05150.
struct Longformer {
  std::vector<uint32_t> global_tokens;
  uint32_t block = 64;  // keys that a kernel visits or passes over together
};

/// Source: Zaheer et al. 2020, arXiv:2007.14062.
struct BigBird {
  uint32_t block = 64;
  uint32_t window_blocks = 1;           // to each side
  std::vector<uint32_t> global_blocks;  // see all and are seen by all
  /// For each block of queries; random_blocks() draws them.
  std::vector<std::vector<uint32_t>> random_blocks;
};
/// `each` different blocks of `blocks` for every block, ascending; the same for the same seed
/// everywhere.
MULCIBER_API std::vector<std::vector<uint32_t>> random_blocks(uint32_t blocks, uint32_t each,
                                                              uint32_t seed);

/// lists[b]: the blocks of keys, ascending, that queries [b * block_queries, (b + 1) *
/// block_queries) see. With blocks of 1 by 1: the neighbours of each node of a graph.
struct ListedKeys {
  uint32_t block_queries = 1, block_keys = 1;
  std::vector<std::vector<uint32_t>> lists;
};

/// Luong et al. 2015, arXiv:1508.04025, section 3.2: weights fall off from a center, times
/// exp(-distance^2 / (2 sigma^2)), and are not made to add up to 1 again. The center is the query's
/// position (local-m) or, where `hidden` and `out` are given, keys * sigmoid(out(tanh(hidden(q))))
/// of the query before its projection (local-p).
struct LocalAttention {
  float sigma = 0;                        // 0: weights do not fall off
  uint32_t reach = 0;                     // D: keys farther from the center are hidden; 0: none
  std::optional<Projection> hidden = {};  // W_p: to (heads * n)
  std::optional<Projection> out = {};     // v_p: to (heads)
};

/// One key and one value of every `stride` positions, by convolutions whose stride is their
/// length; projections come after. A causal query sees the compressed keys that are whole past.
/// Source: Liu et al. 2018, arXiv:1801.10198.
struct MemoryCompression {
  FloatArray keys, values;  // (out, in, stride), as PyTorch's Conv1d has its weight
  std::vector<float> keys_bias = {}, values_bias = {};
};

/// Order of operations: projections, score, times scale, soft cap, bias, masks, softmax, times
/// values.
struct AttentionDescription {
  uint32_t heads = 1;
  uint32_t kv_heads = 0;  // divides heads: queries of several heads share keys; 0: as many as heads

  std::optional<Projection> query = {}, key = {}, value = {};  // none: columns as they are given
  std::optional<Projection> output = {};                       // of all heads' results

  AttentionScore score = AttentionScore::kDot;
  std::optional<float> scale = {};       // none: head_size^-0.5 of kDot, else 1
  std::vector<float> score_vector = {};  // v of kAdditive and kLeaky: (heads, head_size)
  float leaky_slope = 0.2f;              // of kLeaky
  float soft_cap = 0;  // s becomes soft_cap * tanh(s / soft_cap); 0: it stays; arXiv:2408.00118
  std::variant<std::monostate, AlibiBias, T5Bias> bias = {};

  bool causal = false;  // a query sees keys up to its position
  uint32_t window = 0;  // a query sees keys less than this away from its position; 0: all
  std::variant<std::monostate, Longformer, BigBird, ListedKeys> pattern = {};
  bool hard = false;  // the first largest score takes all; Xu et al. 2015, arXiv:1502.03044
  std::optional<LocalAttention> local = {};
  std::optional<MemoryCompression> compression = {};

  std::vector<float> head_mask = {};  // a factor onto the result of each head; empty: all 1
  bool half = false;  // queries, keys, values and weights in 16 bits on the device; sums in 32
};

/// What changes from call to call.
struct AttentionInputs {
  /// Of queries and keys alike; keys and values: (batch, kv_len, columns). queries: (batch, q_len,
  /// columns); (batch * n, ...), n of which share the keys of one; or (1, ...), which every batch
  /// entry takes. Columns are those of all heads, head after head.
  const FloatArray& queries;
  const FloatArray& keys;
  const FloatArray& values;
  std::vector<uint32_t> key_counts = {};  // a number for each batch entry of keys: padding follows
  /// Added to scores: (1 or batch, 1 or heads, q_len, kv_len), compressed keys where there is a
  /// compression. -infinity, or anything below -1e30, hides a key. Not along with a bias.
  FloatArray mask = {};
  /// Position of the first query among the keys; none: the last query stands at the last key.
  std::optional<int32_t> query_offset = {};
  bool weights = false;  // return the probabilities too: a whole matrix for each head
};

struct AttentionResult {
  FloatArray output;   // (queries' batch, q_len, heads * value_size), or output's columns
  FloatArray weights;  // (queries' batch, heads, q_len, kv_len); empty unless asked for
};

/// One attention on a device: its weights are there, and so is the program of the last call, which
/// a call with arrays of the same shapes runs again. One thread at a time.
class MULCIBER_API Attention {
 public:
  /// Throws ShapeError where weights do not fit together.
  Attention(std::shared_ptr<Device> device, AttentionDescription description);
  ~Attention();
  Attention(Attention&&) noexcept;
  Attention& operator=(Attention&&) noexcept;

  /// A query that sees no key gives zeros, also where kv_len is 0. What stands in a hidden place
  /// (NaN and infinities included) has no effect. Heads of queries, keys and values have up to 256
  /// columns each. Throws ShapeError naming what does not fit, KernelError where no kernel of the
  /// device serves, with the reasons, and DeviceError.
  AttentionResult operator()(const AttentionInputs& inputs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
