// Cases of attention, attention_map and latent_attention; conformance/op_cases.cpp declares them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/blocks.h"
#include "conformance/block_input.h"
#include "conformance/ops/attention_reference.h"
#include "conformance/ops/attention_variants.h"
#include "mulciber/error.h"
#include "ops/attention.h"
#include "ops/latent_attention.h"
#include "shaders/attention.h"

namespace mulciber::conformance {
namespace {

enum class AttentionForm { kAttention, kMap, kLatent };

/// Number of floats in the bias of a problem.
size_t attention_bias_words(const AttentionVariant& v) {
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

/// The control tensor: some unused words, key counts, head mask, bias, ancestry, pages.
CaseInput attention_control(const AttentionVariant& v, AttentionControl& control) {
  ControlLayout layout(3);
  if (!v.key_counts.empty()) {
    control.key_counts = layout.add<uint32_t>(v.key_counts.size());
    control.key_count_extra = v.key_count_extra;
  }
  if (v.head_mask || v.sinks)
    control.head_mask = layout.add<float>(uint64_t{v.heads} * (v.sinks ? 2 : 1));
  if (v.bias != AttentionBias::kNone) control.bias = layout.add<float>(attention_bias_words(v));
  if (v.score == AttentionScore::kAdditive || v.score == AttentionScore::kLeaky)
    control.score_vector = layout.add<float>(uint64_t{v.heads} * v.head_size);
  if (v.center == AttentionCenter::kPredicted)
    control.centers = layout.add<float>(v.rows * v.q_len * v.heads);
  if (v.keys.pattern.block_queries != 0)
    control.pattern = layout.add<uint32_t>(v.keys.words.size());
  if (!v.keys.globals.empty()) control.globals = layout.add<uint32_t>(v.keys.globals.size());
  if (v.split_counters)
    control.split_counters = layout.add<uint32_t>(v.rows / v.rows_per_kv * v.heads);
  if (v.ancestry) control.ancestry = layout.add<uint32_t>(v.rows * v.kv_len);
  if (v.page > 0) control.pages = layout.add<uint32_t>(v.pages().numbers().size());

  ControlWords words(layout.words());
  words.fill(ControlArray<uint32_t>{0, 3}, 0xdeadbeef);
  if (control.key_counts) words.set(*control.key_counts, v.key_counts);
  for (uint32_t head = 0; control.head_mask && head < v.heads; ++head)
    words.set(*control.head_mask, head, head == 0 ? 0.0f : 0.5f * static_cast<float>(head));
  // The sinks take little, much or nearly all of the weight.
  for (uint32_t head = 0; v.sinks && head < v.heads; ++head)
    words.set(*control.head_mask, v.heads + head, 3.0f * static_cast<float>(head % 4) - 2);
  if (control.pattern) words.set(*control.pattern, v.keys.words);
  if (control.globals) words.set(*control.globals, v.keys.globals);
  if (control.pages) words.set(*control.pages, v.pages().numbers());
  CaseInput input = words_input(words.words());
  if (!control.bias && !control.score_vector && !control.centers && !control.ancestry) return input;
  input.fill = [=, at = control, fixed = input.fill](std::vector<double>& values,
                                                     std::mt19937& random) {
    fixed(values, random);
    std::normal_distribution<float> normal;
    const auto draw = [&](const auto& array, auto number) {
      for (uint32_t i = 0; array && i < array->count; ++i) values[array->word + i] = number(i);
    };
    const auto any = [&](uint32_t) { return bits_of(normal(random)); };
    // A mask hides every third key, and all keys from the first query.
    const bool mask = v.bias != AttentionBias::kRelative;
    draw(at.bias, [&](uint32_t i) {
      const bool hidden =
          mask && ((at.bias->word + i) % 3 == 0 || (i < v.kv_len && at.bias->count > v.kv_len));
      return bits_of(hidden ? -std::numeric_limits<float>::infinity() : normal(random));
    });
    draw(at.score_vector, any);
    draw(at.centers, any);
    draw(at.ancestry, [&](uint32_t) { return random() % v.rows; });
  };
  return input;
}

/// Calls unseen(row of keys, key) for keys and values that must not affect queries which do not see
/// them.
template <typename Unseen>
void for_unseen_keys(const AttentionVariant& v, Unseen unseen) {
  for (uint64_t row = 0; row < v.rows / v.rows_per_kv; ++row) {
    const uint64_t count =
        v.key_counts.empty() ? v.kv_len
                             : v.key_counts[v.key_counts.size() > 1 ? row : 0] + v.key_count_extra;
    const bool slides = v.window >= 16 && v.causal && v.q_len == 1 && count > v.window;
    for (uint64_t key = 0; key < v.kv_len; ++key) {
      if (key >= count || (slides && key < count - v.window) ||
          std::ranges::find(v.poisoned, key) != v.poisoned.end()) {
        unseen(row, key);
      }
    }
  }
}

/// Makes unseen keys and values NaN or infinite.
void poison_unseen_keys(std::vector<double>& kv, uint64_t columns, const AttentionVariant& v) {
  for_unseen_keys(v, [&](uint64_t row, uint64_t key) {
    for (uint64_t column = 0; column < columns; ++column) {
      kv[v.pages().place(row, key) * columns + column] =
          (key + column) % 3 == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
    }
  });
}

/// Does so for blocks, through their scales.
void poison_unseen_keys(CpuTensor& kv, const AttentionVariant& v) {
  const uint64_t columns = kv.shape.columns(), stride = row_bytes(kv.type, columns) / 4;
  std::vector<uint32_t> words(kv.bytes.size() / 4);
  std::memcpy(words.data(), kv.bytes.data(), kv.bytes.size());
  for_unseen_keys(v, [&](uint64_t row, uint64_t key) {
    uint32_t* at = words.data() + v.pages().place(row, key) * stride +
                   BLOCKS_SCALES_AT(block_format(kv.type), columns);
    for (uint64_t i = 0; i < (columns / 32 + 1) / 2; ++i) at[i] = 0x7c007e00;  // NaN, infinity
  });
  kv.values.clear();
  kv.sizes.clear();
  read_blocks(kv.type, columns, words, kv.values, kv.sizes);
  std::memcpy(kv.bytes.data(), words.data(), kv.bytes.size());
}

std::string attention_case_name(const AttentionVariant& v, uint32_t kv_heads, uint32_t value_size) {
  std::string name =
      fmt::format("r{}_q{}_k{}_h{}x{}", v.rows, v.q_len, v.kv_len, v.heads, v.head_size);
  if (kv_heads != v.heads) name += fmt::format("_kv{}", kv_heads);
  if (value_size != v.head_size) name += fmt::format("_v{}", value_size);
  return v.suffix.empty() ? name : name + "." + v.suffix;
}

OpCase attention_case(const AttentionVariant& v, KernelTypes types, AttentionForm form) {
  const bool map = form == AttentionForm::kMap, latent = form == AttentionForm::kLatent;
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
  if (v.key_parts != 0) options.key_parts = v.key_parts;
  options.bias = v.bias;
  options.bias_span = v.bias_span;
  options.score = v.score;
  options.hard = v.hard;
  options.sinks = v.sinks;
  options.center = v.center;
  options.center_sigma = v.center_sigma;
  options.center_reach = v.center_reach;
  options.pattern = v.keys.pattern;
  options.global_tokens = !v.keys.globals.empty();
  AttentionControl control;
  const CaseInput words = attention_control(v, control);
  const bool controlled = control.key_counts || control.head_mask || control.ancestry ||
                          control.bias || control.pattern || control.globals ||
                          control.score_vector || control.centers || control.split_counters ||
                          control.pages;

  AttentionColumns columns;
  columns.q = v.spare;
  columns.k = latent ? 0 : 2 * v.spare;
  columns.v = latent ? v.head_size - options.value_size
                     : columns.k + options.kv_heads * v.head_size + v.spare;
  const uint64_t q_columns = columns.q + v.heads * v.head_size + v.spare;
  uint64_t kv_columns =
      latent ? v.head_size : columns.v + options.kv_heads * options.value_size + v.spare;
  const uint64_t block = block_elements(types.weight);
  kv_columns = (kv_columns + block - 1) / block * block;

  OpCase c;
  c.name = attention_case_name(v, options.kv_heads, options.value_size);
  c.types = types;
  // Heads that share keys, and rows that do, count as more queries.
  c.tiled_queries = v.q_len * v.rows_per_kv * (v.heads / options.kv_heads);
  if (v.key_parts != 0 && !map) c.needs_constant = CONSTANT_KEY_PARTS;
  // The short list has all masks, and sizes around the tiles of queries and keys.
  const uint32_t size = v.head_size;
  const bool same_types = types.activation == types.weight;
  if (v.suffix.starts_with("prefill")) {
    // Few of the largest cases.
    c.must_pass = v.suffix == "prefill_nan_causal" ||
                  (v.suffix == "prefill" &&
                   (size == 64 || (size == 256 && same_types && types.weight == DataType::kF16)));
  } else if (latent) {
    // Few sizes of released models, which take long.
    c.must_pass = v.page > 0 || (!v.key_counts.empty() && size <= 96) || size == 3 ||
                  (size == 576 && same_types && v.kv_len == 65);
  } else if (!v.suffix.empty()) {
    // One window that hides nothing, and no map over pages.
    c.must_pass = same_types && v.suffix != "around_1000" && !(map && v.page > 0);
  } else {
    // Maps have no tiles of keys: only lengths just past an edge.
    const bool listed = !map || v.kv_len % 16 == 1;
    c.must_pass = (size == 32 && v.kv_len <= 65 && v.kv_len % 2 == 1 && v.rows < 5 && listed) ||
                  ((size == 3 || size == 64 || size == 128) && v.rows == 2);
  }
  CaseInput q = normal_input({v.rows, v.q_len, q_columns}, types.activation, v.deviation);
  const Shape kv_shape = v.page > 0 ? Shape{v.pages().pool(), v.page, kv_columns}
                                    : Shape{v.rows / v.rows_per_kv, v.kv_len, kv_columns};
  CaseInput kv = normal_input(kv_shape, types.weight);
  // Coarse steps make scores of 1e4 exact in 32 bits: an error of one unit in the last place of
  // such a score would change its probability by 1e-3.
  const bool coarse = v.deviation > 10;
  q.fill = [=, normal = q.fill](std::vector<double>& values, std::mt19937& random) {
    normal(values, random);
    if (!coarse) return;
    for (double& value : values) value = std::round(value);
  };
  if (block > 1) {
    kv = coarse ? whole_input(kv_shape, types.weight, 1) : kv;
    kv.draw = [=, draw = kv.draw](std::mt19937& random) {
      CpuTensor tensor = draw(random);
      if (v.poison) poison_unseen_keys(tensor, v);
      return tensor;
    };
  } else {
    kv.fill = [=, normal = kv.fill](std::vector<double>& values, std::mt19937& random) {
      normal(values, random);
      if (coarse) {
        for (double& value : values) value = std::round(value * 4) / 4;
      }
      if (v.poison) poison_unseen_keys(values, kv_columns, v);
    };
  }
  c.inputs = {q, kv, words};
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    AttentionOptions bound = options;
    if (controlled) {
      bound.control = control;
      bound.control->tensor = inputs[2];
    }
    const HeadColumns q{inputs[0], columns.q}, k{inputs[1], columns.k}, value{inputs[1], columns.v};
    if (map) return std::vector<Tensor>{attention_map(builder, q, k, bound)};
    std::vector<Tensor> outputs{latent ? latent_attention(builder, q, inputs[1], bound)
                                       : attention(builder, q, k, value, bound)};
    if (v.split_counters) outputs.push_back(inputs[2]);  // must be unchanged
    return outputs;
  };
  // With scores far apart one weight is 1 and the others are 0; with one key the weight is 1. A map
  // of few keys is nearly all zeros.
  c.degenerate = v.deviation > 10 || v.sparse || (map && v.hard) ||
                 (map && (v.kv_len == 1 || (v.window != 0 && v.window < 16)));
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic& arithmetic) {
    AttentionOptions bound = options;
    if (controlled) bound.control = control;
    AttentionReference expected = attention_reference(inputs[0], inputs[1], inputs[2], columns,
                                                      bound, map ? Arithmetic{} : arithmetic);
    std::vector<CpuTensor> outputs{map ? expected.map : expected.result};
    if (v.split_counters && !map) outputs.push_back(inputs[2]);
    return outputs;
  };
  return c;
}

AttentionVariant parse_attention_shape(std::span<const uint64_t> shape) {
  if (shape.size() < 5 || shape.size() > 7 || std::count(shape.begin(), shape.end(), 0) != 0) {
    throw ShapeError("attention", "a shape is five to seven positive numbers",
                     "give rows,q_len,kv_len,heads,head_size such as 1,512,512,12,64, then the "
                     "heads of the keys, "
                     "then a window before each query");
  }
  AttentionVariant v{.rows = shape[0],
                     .q_len = shape[1],
                     .kv_len = shape[2],
                     .heads = static_cast<uint32_t>(shape[3]),
                     .head_size = static_cast<uint32_t>(shape[4])};
  if (shape.size() > 5) v.kv_heads = static_cast<uint32_t>(shape[5]);
  if (shape.size() > 6) v.window = static_cast<uint32_t>(shape[6]);
  v.causal = v.window != 0;
  v.split_counters = true;
  return v;
}

class AttentionCases : public OpCases {
 public:
  explicit AttentionCases(AttentionForm form) : form_(form) {}

  std::string shape_format() const override {
    return "rows,q_len,kv_len,heads,head_size[,kv_heads[,window]]";
  }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 512, 512, 12, 64},   {1, 64, 64, 12, 64},
            {1, 1, 1024, 12, 64},    {20, 40, 40, 4, 32},
            {80, 1, 40, 4, 32},      {1, 1, 20, 4, 32},
            {1, 1, 1024, 32, 64, 8}, {1, 1024, 1024, 4, 64, 4, 128}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    return attention_case(parse_attention_shape(shape), types, form_);
  }
  std::vector<OpCase> kinds(std::span<const uint64_t> shape, KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (const AttentionVariant& v : attention_kinds(parse_attention_shape(shape))) {
      cases.push_back(attention_case(v, types, form_));
      cases.back().name = v.suffix;
    }
    return cases;
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (const AttentionVariant& v : attention_variants())
      cases.push_back(attention_case(v, types, form_));
    for (const AttentionVariant& v : attention_family_variants())
      cases.push_back(attention_case(v, types, form_));
    return cases;
  }

 private:
  AttentionForm form_;
};

class LatentCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,q_len,kv_len,heads,rotated,rank"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    // Shapes of DeepSeek V2 Lite and V3.
    return {{1, 1, 1024, 16, 64, 512}, {1, 1, 4096, 128, 64, 512}, {1, 128, 128, 16, 64, 512}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 6 || std::ranges::count(shape, uint64_t{0}) != 0) {
      throw ShapeError("latent_attention", "a shape is six positive numbers",
                       "give rows,q_len,kv_len,heads,rotated,rank such as 1,1,1024,16,64,512");
    }
    return attention_case({.rows = shape[0],
                           .q_len = shape[1],
                           .kv_len = shape[2],
                           .heads = static_cast<uint32_t>(shape[3]),
                           .kv_heads = 1,
                           .head_size = static_cast<uint32_t>(shape[4] + shape[5]),
                           .value_size = static_cast<uint32_t>(shape[5]),
                           .causal = true,
                           .split_counters = true},
                          types, AttentionForm::kLatent);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (const AttentionVariant& v : latent_attention_variants()) {
      const uint64_t block = block_elements(types.weight);
      if (v.head_size % block == 0 && v.value_size % block == 0)
        cases.push_back(attention_case(v, types, AttentionForm::kLatent));
    }
    return cases;
  }
};

}  // namespace

const OpCases& attention_cases() {
  static const AttentionCases cases(AttentionForm::kAttention);
  return cases;
}

const OpCases& attention_map_cases() {
  static const AttentionCases cases(AttentionForm::kMap);
  return cases;
}

const OpCases& latent_attention_cases() {
  static const LatentCases cases;
  return cases;
}

}  // namespace mulciber::conformance
