// Attention of every kind on any Vulkan device: a description, input arrays, output arrays.
// Formulas and sources: docs/reference/attention.md. No Vulkan headers are needed. Errors are the
// types of mulciber/error.h; nothing is printed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mulciber/device.h"

namespace mulciber {

/// Values and their shape, row-major, outermost dimension first.
struct FloatArray {
  std::vector<uint64_t> shape;
  std::vector<float> values;
};

/// y = x W^T + b over the last dimension. weight: (out, in), or (heads, out, in), where each head's
/// matrix reads that head's columns of x. bias: a value for each column of y, or empty.
struct Projection {
  FloatArray weight;
  std::vector<float> bias = {};
};

/// How a query and a key are combined into a score, before the scale.
enum class AttentionScore : uint32_t {
  kDot = 0,       // q . k
  kAdditive = 1,  // v . tanh(q + k); Bahdanau et al. 2015, arXiv:1409.0473
  kLeaky = 2,     // v . leaky_relu(q + k); graph attention, Brody et al. 2022, arXiv:2105.14491
  kDistance = 3,  // -|q - k|^2; with the scale 1 / (2 sigma^2) Nadaraya-Watson regression
};

/// Adds -slope * |distance| to scores. slopes: one for each head; empty: the paper's slopes.
/// Source: Press et al. 2022, arXiv:2108.12409.
struct AlibiBias {
  std::vector<float> slopes = {};
};

/// Adds table[bucket(distance), head] to scores. table: (buckets, heads).
/// Source: Raffel et al. 2020, arXiv:1910.10683.
struct T5Bias {
  FloatArray table;
  uint32_t max_distance = 128;
  bool bidirectional = true;  // false: keys after the query use the bucket of distance 0
};

/// Global tokens beside AttentionDescription::window: they attend to all keys, and all queries
/// attend to their keys. Source: Beltagy et al. 2020, arXiv:2004.05150.
struct Longformer {
  std::vector<uint32_t> global_tokens;
  uint32_t block = 64;  // keys that a kernel visits or skips together
};

/// Blocks of keys that a block of queries attends to: its window, global blocks and random blocks.
/// Source: Zaheer et al. 2020, arXiv:2007.14062.
struct BigBird {
  uint32_t block = 64;
  uint32_t window_blocks = 1;           // to each side
  std::vector<uint32_t> global_blocks;  // attend to all blocks, and all blocks attend to them
  /// For each block of queries; random_blocks() draws them.
  std::vector<std::vector<uint32_t>> random_blocks;
};
/// Draws `each` different blocks of `blocks` for every block, in ascending order. Equal seeds give
/// equal results on every platform.
MULCIBER_API std::vector<std::vector<uint32_t>> random_blocks(uint32_t blocks, uint32_t each,
                                                              uint32_t seed);

/// lists[b]: the blocks of keys, ascending, that queries [b * block_queries, (b + 1) *
/// block_queries) attend to. Blocks of 1 by 1 describe a graph: lists[b] are the neighbours of node
/// b.
struct ListedKeys {
  uint32_t block_queries = 1, block_keys = 1;
  std::vector<std::vector<uint32_t>> lists;
};

/// Multiplies attention weights with exp(-distance^2 / (2 sigma^2)), where distance is measured
/// from a center; they are not normalized again. The center is the query's position (local-m) or,
/// where `hidden` and `out` are given, keys * sigmoid(out(tanh(hidden(q)))), where q is the query
/// before its projection and keys their number (local-p).
/// Source: Luong et al. 2015, arXiv:1508.04025, section 3.2.
struct LocalAttention {
  float sigma = 0;                        // 0: weights do not fall off
  uint32_t reach = 0;                     // D: keys farther from the center are masked; 0: none
  std::optional<Projection> hidden = {};  // W_p: to (heads * n)
  std::optional<Projection> out = {};     // v_p: to (heads)
};

/// Computes one key and one value from every `stride` positions, by convolutions whose stride is
/// their length; projections follow. A causal query attends to a compressed key only if none of the
/// key's positions lies after the query.
/// Source: Liu et al. 2018, arXiv:1801.10198.
struct MemoryCompression {
  FloatArray keys, values;  // (out, in, stride), the layout of PyTorch's Conv1d weight
  std::vector<float> keys_bias = {}, values_bias = {};
};

/// Operations run in this order: projections, score, scale, soft cap, bias, masks, softmax, product
/// with the values.
struct AttentionDescription {
  uint32_t heads = 1;
  uint32_t kv_heads = 0;  // divides heads (grouped-query attention); 0: equal to heads

  std::optional<Projection> query = {}, key = {}, value = {};  // none: inputs are used unprojected
  std::optional<Projection> output = {};                       // projects the results of all heads

  AttentionScore score = AttentionScore::kDot;
  std::optional<float> scale = {};       // none: head_size^-0.5 for kDot, else 1
  std::vector<float> score_vector = {};  // v for kAdditive and kLeaky: (heads, head_size)
  float leaky_slope = 0.2f;              // for kLeaky
  float soft_cap = 0;  // s becomes soft_cap * tanh(s / soft_cap); 0: off; arXiv:2408.00118
  std::variant<std::monostate, AlibiBias, T5Bias> bias = {};

  bool causal = false;  // a query attends to keys up to its position
  uint32_t window = 0;  // a query attends to keys nearer than this to its position; 0: all
  std::variant<std::monostate, Longformer, BigBird, ListedKeys> pattern = {};
  bool hard = false;  // the largest score, of equals the first, takes all weight; arXiv:1502.03044
  std::optional<LocalAttention> local = {};
  std::optional<MemoryCompression> compression = {};

  std::vector<float> head_mask = {};  // a factor for the result of each head; empty: all 1
  bool half = false;  // store queries, keys, values and weights as f16; sums stay f32
};

/// Inputs of one call.
struct AttentionInputs {
  /// keys, values: (batch, kv_len, columns). queries: (batch, q_len, columns); (batch * n, q_len,
  /// columns), where n consecutive entries share one entry of keys; or (1, q_len, columns), which
  /// every batch entry uses. The columns hold all heads, one after another.
  const FloatArray& queries;
  const FloatArray& keys;
  const FloatArray& values;
  std::vector<uint32_t> key_counts = {};  // valid keys of each batch entry; padding follows them
  /// Values added to scores: (1 or batch, 1 or heads, q_len, kv_len); with a compression the last
  /// extent is the number of compressed keys. -infinity, or any value below -1e30, masks a key. A
  /// mask and a bias exclude each other.
  FloatArray mask = {};
  /// Position of the first query among the keys; none: the last query is at the last key's
  /// position.
  std::optional<int32_t> query_offset = {};
  bool weights = false;  // also return the attention weights: a full matrix for each head
};

struct AttentionResult {
  FloatArray output;   // (queries' batch, q_len, heads * value_size, or columns of `output`)
  FloatArray weights;  // (queries' batch, heads, q_len, kv_len); empty unless asked for
};

/// One attention on a device. It keeps its weights there, and the program of the last call, which a
/// call with the same shapes and options runs again. Not thread-safe.
class MULCIBER_API Attention {
 public:
  /// Throws ShapeError when the weights' shapes disagree.
  Attention(std::shared_ptr<Device> device, AttentionDescription description);
  ~Attention();
  Attention(Attention&&) noexcept;
  Attention& operator=(Attention&&) noexcept;

  /// Computes the attention. A query whose keys are all masked gives zeros, also when kv_len is 0.
  /// Values at masked positions (NaN and infinities included) have no effect. A head of queries,
  /// keys or values has at most 256 columns. Throws ShapeError naming the array that does not fit,
  /// KernelError with the reasons when no kernel fits the device, and DeviceError.
  AttentionResult operator()(const AttentionInputs& inputs);
  /// Frees the program of the last call and its arrays on the device; weights stay. Returns what
  /// Translator::trim() does.
  uint64_t trim();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
