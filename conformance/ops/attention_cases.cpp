#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "conformance/op_case.h"
#include "conformance/ops/attention_reference.h"
#include "mulciber/error.h"
#include "runtime/op.h"
#include "runtime/ops/attention.h"

namespace mulciber::conformance {
namespace {

/// A problem of the suite; what is not said is absent.
struct Variant {
  uint64_t rows = 1, q_len = 1, kv_len = 1;
  uint32_t heads = 1, kv_heads = 0;        // 0: as many as heads
  uint32_t head_size = 1, value_size = 0;  // 0: as head_size
  std::string suffix;
  bool causal = false;
  uint32_t rows_per_kv = 1;
  std::vector<uint32_t> key_counts;  // per row of keys, or one for all
  uint32_t key_count_extra = 0;
  bool ancestry = false;
  bool head_mask = false;
  bool poison = false;   // NaN and infinities where no query looks
  double deviation = 1;  // of q
  uint32_t spare = 0;    // columns between and after the parts, so that strides and offsets are odd
  float scale = 0;       // 0: head_size^-0.5
  std::optional<int32_t> query_offset;
  uint32_t window = 0;
  float soft_cap = 0;
  AttentionBias bias = AttentionBias::kNone;
  uint32_t bias_span = 0;
};

/// Floats of the bias of a problem.
size_t bias_words(const Variant& v) {
  switch (v.bias) {
    case AttentionBias::kNone: return 0;
    case AttentionBias::kRelative: return v.heads * (2 * v.bias_span + 1);
    case AttentionBias::kMask: return v.q_len * v.kv_len;
    case AttentionBias::kMaskPerRow: return v.rows * v.q_len * v.kv_len;
    case AttentionBias::kMaskPerHead: return v.heads * v.q_len * v.kv_len;
    case AttentionBias::kMaskPerRowAndHead: return v.rows * v.heads * v.q_len * v.kv_len;
  }
  return 0;
}

/// The control tensor: some words that mean nothing, key counts, head mask, bias, ancestry.
CaseInput control_of(const Variant& v, AttentionControl& control) {
  std::vector<uint32_t> words(3, 0xdeadbeef);
  if (!v.key_counts.empty()) {
    control.key_counts = static_cast<int32_t>(words.size());
    control.key_count_stride = v.key_counts.size() > 1 ? 1 : 0;
    control.key_count_extra = v.key_count_extra;
    words.insert(words.end(), v.key_counts.begin(), v.key_counts.end());
  }
  if (v.head_mask) {
    control.head_mask = static_cast<int32_t>(words.size());
    for (uint32_t head = 0; head < v.heads; ++head) {
      words.push_back(bits_of(head == 0 ? 0.0f : 0.5f * static_cast<float>(head)));
    }
  }
  const size_t bias = words.size(), bias_end = bias + bias_words(v);
  if (v.bias != AttentionBias::kNone) control.bias = static_cast<int32_t>(bias);
  words.resize(bias_end);
  const size_t ancestors = words.size();
  if (v.ancestry) {
    control.ancestry = static_cast<int32_t>(ancestors);
    words.resize(ancestors + v.rows * v.kv_len);
  }
  CaseInput input = words_input(words);
  if (!v.ancestry && v.bias == AttentionBias::kNone) return input;
  input.fill = [=, fixed = input.fill, rows = v.rows](std::vector<double>& values, std::mt19937& random) {
    fixed(values, random);
    // A mask hides every third key, and all keys of the first query.
    const bool mask = bias_end - bias > 0 && v.bias != AttentionBias::kRelative;
    std::normal_distribution<float> normal;
    for (size_t i = bias; i < bias_end; ++i) {
      const bool hidden = mask && (i % 3 == 0 || (i - bias < v.kv_len && bias_end - bias > v.kv_len));
      values[i] = bits_of(hidden ? -std::numeric_limits<float>::infinity() : normal(random));
    }
    for (size_t i = ancestors; i < values.size(); ++i) values[i] = static_cast<double>(random() % rows);
  };
  return input;
}

/// Makes every key and value that no query may see NaN or infinite.
void poison_unseen(std::vector<double>& kv, uint64_t columns, const Variant& v) {
  for (uint64_t row = 0; row < v.rows / v.rows_per_kv; ++row) {
    const uint64_t count = v.key_counts[v.key_counts.size() > 1 ? row : 0] + v.key_count_extra;
    const bool slides = v.window >= 16 && v.causal && v.q_len == 1 && count > v.window;
    for (uint64_t key = 0; key < v.kv_len; ++key) {
      if (key < count && !(slides && key < count - v.window)) continue;
      for (uint64_t column = 0; column < columns; ++column) {
        kv[(row * v.kv_len + key) * columns + column] =
            (key + column) % 3 == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
      }
    }
  }
}

std::string name_of_case(const Variant& v, uint32_t kv_heads, uint32_t value_size) {
  std::string name =
      fmt::format("r{}_q{}_k{}_h{}x{}", v.rows, v.q_len, v.kv_len, v.heads, v.head_size);
  if (kv_heads != v.heads) name += fmt::format("_kv{}", kv_heads);
  if (value_size != v.head_size) name += fmt::format("_v{}", value_size);
  return v.suffix.empty() ? name : name + "." + v.suffix;
}

OpCase build_case(const Variant& v, KernelTypes types, bool map) {
  AttentionOptions options;
  options.heads = v.heads;
  options.kv_heads = v.kv_heads == 0 ? v.heads : v.kv_heads;
  options.head_size = v.head_size;
  options.value_size = v.value_size == 0 ? v.head_size : v.value_size;
  options.scale = v.scale != 0 ? v.scale : static_cast<float>(1 / std::sqrt(v.head_size));
  options.causal = v.causal;
  options.rows_per_kv = v.rows_per_kv;
  options.query_offset = v.query_offset;
  options.window = v.window;
  options.soft_cap = v.soft_cap;
  options.bias = v.bias;
  options.bias_span = v.bias_span;
  AttentionControl control;
  const CaseInput words = control_of(v, control);
  const bool controlled = !v.key_counts.empty() || v.head_mask || v.ancestry || control.bias >= 0;

  AttentionColumns columns;
  columns.q = v.spare;
  columns.k = 2 * v.spare;
  columns.v = columns.k + options.kv_heads * v.head_size + v.spare;
  const uint64_t q_columns = columns.q + v.heads * v.head_size + v.spare;
  const uint64_t kv_columns = columns.v + options.kv_heads * options.value_size + v.spare;

  OpCase c;
  c.name = name_of_case(v, options.kv_heads, options.value_size);
  c.types = types;
  // All masks, and sizes around the tiles of queries and keys.
  const uint32_t size = v.head_size;
  c.must_pass = !v.suffix.empty() ? types.activation == types.weight
                                  : (size == 32 && v.kv_len <= 65 && v.kv_len % 2 == 1 && v.rows < 5) ||
                                        ((size == 3 || size == 64 || size == 128) && v.rows == 2);
  CaseInput q = normal_input({v.rows, v.q_len, q_columns}, types.activation, v.deviation);
  CaseInput kv = normal_input({v.rows / v.rows_per_kv, v.kv_len, kv_columns}, types.weight);
  // Coarse steps make scores of 1e4 exact in 32 bits: an error of one unit in the last place of such
  // a score would be one of 1e-3 in its probability.
  const bool coarse = v.deviation > 10;
  q.fill = [=, normal = q.fill](std::vector<double>& values, std::mt19937& random) {
    normal(values, random);
    if (!coarse) return;
    for (double& value : values) value = std::round(value);
  };
  kv.fill = [=, normal = kv.fill](std::vector<double>& values, std::mt19937& random) {
    normal(values, random);
    if (coarse) {
      for (double& value : values) value = std::round(value * 4) / 4;
    }
    if (v.poison) poison_unseen(values, kv_columns, v);
  };
  c.inputs = {q, kv, words};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    AttentionOptions bound = options;
    if (controlled) {
      bound.control = control;
      bound.control->tensor = inputs[2];
    }
    const HeadColumns q{inputs[0], columns.q}, k{inputs[1], columns.k}, value{inputs[1], columns.v};
    if (map) return std::vector<Tensor>{attention_map(builder, q, k, bound)};
    return std::vector<Tensor>{attention(builder, q, k, value, bound)};
  };
  // Of scores far apart one weight is 1 and the others 0; of one key the weight is 1.
  // A map of small windows is nearly all zeros.
  c.degenerate = v.deviation > 10 || (map && (v.kv_len == 1 || (v.window != 0 && v.window < 16)));
  c.reference = [=](std::span<const HostTensor> inputs, const Arithmetic&) {
    AttentionOptions bound = options;
    if (controlled) bound.control = control;
    AttentionReference expected =
        attention_reference(inputs[0], inputs[1], inputs[2], columns, bound);
    return std::vector<HostTensor>{map ? expected.map : expected.result};
  };
  return c;
}

/// Problems that both attention and its map must solve.
std::vector<Variant> variants() {
  std::vector<Variant> list;
  auto add = [&](Variant v) { list.push_back(std::move(v)); };
  // Head sizes of every loop and tail; sizes of 1, primes, tile edges and their neighbours.
  for (uint32_t size : {1, 3, 16, 24, 32, 48, 64, 80, 128, 256}) {
    add({.rows = 2, .q_len = 5, .kv_len = 19, .heads = 2, .head_size = size});
    add({.rows = 1, .q_len = 1, .kv_len = 67, .heads = 3, .head_size = size});
    add({.rows = 1, .q_len = 17, .kv_len = 33, .heads = 1, .head_size = size});
  }
  for (uint64_t q_len : {1, 3, 4, 7, 8, 9, 16, 31, 65}) {
    add({.rows = 3, .q_len = q_len, .kv_len = q_len, .heads = 4, .head_size = 32});
  }
  for (uint64_t kv_len : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129}) {
    add({.rows = 1, .q_len = 9, .kv_len = kv_len, .heads = 2, .head_size = 32});
    add({.rows = 2, .q_len = 1, .kv_len = kv_len, .heads = 2, .head_size = 32});
  }
  add({.rows = 80, .q_len = 1, .kv_len = 21, .heads = 4, .head_size = 32});
  add({.rows = 7, .q_len = 60, .kv_len = 60, .heads = 4, .head_size = 32});

  // Keys and values of different sizes; strides and offsets that no vector load likes.
  add({.rows = 2, .q_len = 9, .kv_len = 21, .heads = 3, .head_size = 24, .value_size = 40});
  add({.rows = 2, .q_len = 9, .kv_len = 21, .heads = 2, .head_size = 64, .value_size = 16});
  add({.rows = 1, .q_len = 12, .kv_len = 40, .heads = 2, .head_size = 7, .value_size = 5});
  add({.rows = 2,
       .q_len = 9,
       .kv_len = 21,
       .heads = 2,
       .head_size = 32,
       .suffix = "spare1",
       .spare = 1});
  add({.rows = 2,
       .q_len = 1,
       .kv_len = 21,
       .heads = 2,
       .head_size = 32,
       .suffix = "spare4",
       .spare = 4});
  add({.rows = 2,
       .q_len = 9,
       .kv_len = 21,
       .heads = 2,
       .head_size = 16,
       .suffix = "spare8",
       .spare = 8});

  // Causal, with fewer, as many and more queries than keys.
  for (uint64_t kv_len : {4, 16, 17, 40, 100}) {
    add({.rows = 2,
         .q_len = 17,
         .kv_len = kv_len,
         .heads = 2,
         .head_size = 32,
         .suffix = "causal",
         .causal = true});
  }
  add({.rows = 1,
       .q_len = 1,
       .kv_len = 23,
       .heads = 2,
       .head_size = 32,
       .suffix = "causal",
       .causal = true});
  add({.rows = 1,
       .q_len = 33,
       .kv_len = 33,
       .heads = 2,
       .head_size = 5,
       .suffix = "causal",
       .causal = true});
  add({.rows = 2,
       .q_len = 9,
       .kv_len = 30,
       .heads = 2,
       .head_size = 32,
       .suffix = "causal_counts",
       .causal = true,
       .key_counts = {3, 27},
       .poison = true});

  // Key counts: none, some, all; one for all rows; more than there are; with what stands behind
  // them being NaN.
  for (uint64_t q_len : {1, 6, 19}) {
    add({.rows = 4,
         .q_len = q_len,
         .kv_len = 37,
         .heads = 2,
         .head_size = 32,
         .suffix = "counts",
         .key_counts = {0, 1, 20, 37},
         .poison = true});
    add({.rows = 3,
         .q_len = q_len,
         .kv_len = 37,
         .heads = 2,
         .head_size = 24,
         .suffix = "count_for_all",
         .key_counts = {16},
         .key_count_extra = 1,
         .poison = true});
    add({.rows = 2,
         .q_len = q_len,
         .kv_len = 11,
         .heads = 2,
         .head_size = 3,
         .suffix = "counts",
         .key_counts = {5, 0},
         .poison = true});
  }
  add({.rows = 2,
       .q_len = 3,
       .kv_len = 9,
       .heads = 2,
       .head_size = 16,
       .suffix = "counts_past_end",
       .key_counts = {8, 20},
       .key_count_extra = 2});

  // Several rows of queries over one row of keys; grouped heads; ancestry; head masks.
  for (uint64_t q_len : {1, 2, 5}) {
    add({.rows = 12,
         .q_len = q_len,
         .kv_len = 25,
         .heads = 2,
         .head_size = 32,
         .suffix = "beams",
         .rows_per_kv = 4,
         .key_counts = {25, 0, 9},
         .poison = true});
    add({.rows = 6,
         .q_len = q_len,
         .kv_len = 18,
         .heads = 2,
         .head_size = 16,
         .suffix = "beams_causal",
         .causal = true,
         .rows_per_kv = 3});
    add({.rows = 6,
         .q_len = q_len,
         .kv_len = 25,
         .heads = 4,
         .head_size = 32,
         .suffix = "ancestry",
         .key_counts = {14},
         .key_count_extra = 1,
         .ancestry = true});
    add({.rows = 3,
         .q_len = q_len,
         .kv_len = 9,
         .heads = 2,
         .head_size = 5,
         .suffix = "ancestry",
         .ancestry = true});
    add({.rows = 2,
         .q_len = q_len,
         .kv_len = 40,
         .heads = 6,
         .kv_heads = 2,
         .head_size = 32,
         .suffix = "grouped"});
    add({.rows = 2,
         .q_len = q_len,
         .kv_len = 20,
         .heads = 4,
         .head_size = 32,
         .suffix = "head_mask",
         .key_counts = {20, 7},
         .head_mask = true,
         .poison = true});
  }
  // Grouped heads in decoding and in chunks: the heads of a group share a tile, and tiles are cut inside groups.
  for (uint32_t group : {2, 3, 4, 8}) {
    for (uint64_t q_len : {1, 11}) {
      add({.rows = 2,
           .q_len = q_len,
           .kv_len = 45,
           .heads = 2 * group,
           .kv_heads = 2,
           .head_size = 64,
           .suffix = "chunk",
           .causal = true,
           .key_counts = {3, 21},  // tokens before this chunk
           .key_count_extra = static_cast<uint32_t>(q_len),
           .head_mask = group == 3,
           .poison = true});
    }
  }
  // A chunk padded on the right may count keys past the end; a fixed position; queries before the first key.
  for (uint32_t window : {0u, 4u}) {
    add({.rows = 2,
         .q_len = 16,
         .kv_len = 30,
         .heads = 4,
         .kv_heads = 2,
         .head_size = 32,
         .suffix = fmt::format("chunk_past_end_w{}", window),
         .causal = true,
         .key_counts = {19, 0},
         .key_count_extra = 16,
         .window = window});
    for (int32_t offset : {-5, 0, 14}) {
      add({.rows = 2,
           .q_len = 17,
           .kv_len = 29,
           .heads = 2,
           .head_size = 24,
           .suffix = fmt::format("offset_{}_w{}", name_part(offset), window),
           .causal = true,
           .key_counts = {8, 29},
           .query_offset = offset,
           .window = window});
    }
  }
  // Windows: one key, smaller and larger than tiles; to both sides; in decoding; keys outside hold NaN.
  for (uint32_t window : {1, 5, 16, 33, 1000}) {
    add({.rows = 2,
         .q_len = 40,
         .kv_len = 40,
         .heads = 2,
         .head_size = 32,
         .suffix = fmt::format("window_{}", window),
         .causal = true,
         .window = window});
    add({.rows = 2,
         .q_len = 40,
         .kv_len = 71,
         .heads = 2,
         .head_size = 40,
         .suffix = fmt::format("around_{}", window),
         .query_offset = 13,
         .window = window});
    add({.rows = 2,
         .q_len = 1,
         .kv_len = 70,
         .heads = 4,
         .kv_heads = 2,
         .head_size = 32,
         .suffix = fmt::format("window_{}", window),
         .causal = true,
         .key_counts = {7, 64},
         .key_count_extra = 1,
         .poison = true,
         .window = window});
  }
  // Caps far above the scores and far below them.
  for (float cap : {0.5f, 3.0f, 50.0f}) {
    add({.rows = 1,
         .q_len = 18,
         .kv_len = 37,
         .heads = 2,
         .head_size = 32,
         .suffix = fmt::format("cap_{}", name_part(cap)),
         .causal = true,
         .deviation = 4,
         .soft_cap = cap});
  }
  // Biases by distance and by place, alone and with everything else.
  for (uint32_t span : {1, 8, 100}) {
    add({.rows = 2,
         .q_len = 20,
         .kv_len = 33,
         .heads = 3,
         .head_size = 24,
         .suffix = fmt::format("relative_{}", span),
         .query_offset = 4,
         .bias = AttentionBias::kRelative,
         .bias_span = span});
    add({.rows = 2,
         .q_len = 3,
         .kv_len = 33,
         .heads = 4,
         .kv_heads = 2,
         .head_size = 16,
         .suffix = fmt::format("relative_{}_capped", span),
         .causal = true,
         .key_counts = {8, 29},
         .window = 11,
         .soft_cap = 2,
         .bias = AttentionBias::kRelative,
         .bias_span = span});
  }
  for (AttentionBias bias : {AttentionBias::kMask, AttentionBias::kMaskPerRow, AttentionBias::kMaskPerHead,
                             AttentionBias::kMaskPerRowAndHead}) {
    for (uint64_t q_len : {1, 9}) {
      add({.rows = 4,
           .q_len = q_len,
           .kv_len = 21,
           .heads = 4,
           .kv_heads = 2,
           .head_size = 32,
           .suffix = fmt::format("mask_{}", static_cast<uint32_t>(bias)),
           .rows_per_kv = 2,
           .bias = bias});
    }
  }
  add({.rows = 5,
       .q_len = 11,
       .kv_len = 13,
       .heads = 8,
       .kv_heads = 1,
       .head_size = 20,
       .value_size = 12,
       .suffix = "grouped_causal",
       .causal = true});

  // Scores of about +-1e4, and all but equal ones.
  add({.rows = 1,
       .q_len = 9,
       .kv_len = 50,
       .heads = 2,
       .head_size = 32,
       .suffix = "large",
       .deviation = 100,
       .scale = 10});
  add({.rows = 1,
       .q_len = 1,
       .kv_len = 50,
       .heads = 2,
       .head_size = 32,
       .suffix = "large",
       .deviation = 100,
       .scale = 10});
  add({.rows = 1,
       .q_len = 9,
       .kv_len = 50,
       .heads = 2,
       .head_size = 32,
       .suffix = "tiny",
       .deviation = 1e-3});
  return list;
}

Variant parse_shape(std::span<const uint64_t> shape) {
  if (shape.size() < 5 || shape.size() > 7 || std::count(shape.begin(), shape.end(), 0) != 0) {
    throw ShapeError("attention", "a shape is five to seven positive numbers",
                     "give rows,q_len,kv_len,heads,head_size such as 1,512,512,12,64, then the heads of the keys, "
                     "then a window before each query");
  }
  Variant v{.rows = shape[0],
            .q_len = shape[1],
            .kv_len = shape[2],
            .heads = static_cast<uint32_t>(shape[3]),
            .head_size = static_cast<uint32_t>(shape[4])};
  if (shape.size() > 5) v.kv_heads = static_cast<uint32_t>(shape[5]);
  if (shape.size() > 6) v.window = static_cast<uint32_t>(shape[6]);
  v.causal = v.window != 0;
  return v;
}

class AttentionCases : public OpCases {
 public:
  explicit AttentionCases(bool map) : map_(map) {}

  Op op() const override { return map_ ? Op::kAttentionMap : Op::kAttention; }
  std::string shape_format() const override { return "rows,q_len,kv_len,heads,head_size[,kv_heads[,window]]"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 512, 512, 12, 64}, {1, 64, 64, 12, 64}, {1, 1, 1024, 12, 64},
            {20, 40, 40, 4, 32},   {80, 1, 40, 4, 32},  {1, 1, 20, 4, 32},
            {1, 1, 1024, 32, 64, 8}, {1, 1024, 1024, 4, 64, 4, 128}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    return build_case(parse_shape(shape), types, map_);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (const Variant& v : variants()) cases.push_back(build_case(v, types, map_));
    return cases;
  }

 private:
  bool map_;
};

}  // namespace

const OpCases& attention_cases() {
  static const AttentionCases cases(false);
  return cases;
}

const OpCases& attention_map_cases() {
  static const AttentionCases cases(true);
  return cases;
}

}  // namespace mulciber::conformance
