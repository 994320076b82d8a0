// Attention that appends first: both references one after the other, for positions around the edges
// of key blocks and splits, and caches that hold large numbers where nothing is appended yet.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/blocks.h"
#include "conformance/block_input.h"
#include "conformance/ops/attention_reference.h"
#include "conformance/ops/rope_reference.h"
#include "mulciber/error.h"
#include "ops/append_attention.h"

namespace mulciber::conformance {
namespace {

struct AppendAttentionVariant {
  RopeVariant rope;  // positions: one for each row
  uint32_t window = 0;
  float soft_cap = 0;
  bool head_mask = false, sinks = false, mask = false;
  bool split_counters = false;
};

/// Large numbers at the positions that no token before a row's last one took, to expose reads of
/// them. They are not NaN, because the cache is an output too.
CaseInput append_attention_cache(const RopeVariant& v, DataType type) {
  const uint64_t columns = 2ull * v.kv_heads * v.head_size;
  CaseInput cache = normal_input(v.cache_shape(), type);
  if (!is_block_type(type)) {
    cache.fill = [=, normal = cache.fill](std::vector<double>& values, std::mt19937& random) {
      normal(values, random);
      for (uint64_t row = 0; row < v.rows; ++row) {
        for (uint64_t key = v.positions[row]; key < v.context; ++key) {
          double* at = values.data() + v.pages().place(row, key) * columns;
          for (uint64_t column = 0; column < columns; ++column) at[column] *= 4096;
        }
      }
    };
    return cache;
  }
  cache.draw = [=, draw = cache.draw](std::mt19937& random) {
    CpuTensor tensor = draw(random);
    const uint64_t stride = row_bytes(type, columns) / 4;
    std::vector<uint32_t> words(tensor.bytes.size() / 4);
    std::memcpy(words.data(), tensor.bytes.data(), tensor.bytes.size());
    for (uint64_t row = 0; row < v.rows; ++row) {
      for (uint64_t key = v.positions[row]; key < v.context; ++key) {
        uint32_t* scales = words.data() + v.pages().place(row, key) * stride +
                           BLOCKS_SCALES_AT(block_format(type), columns);
        std::fill_n(scales, (columns / 32 + 1) / 2, 0x70007000);
      }
    }
    tensor.values.clear();
    tensor.sizes.clear();
    read_blocks(type, columns, words, tensor.values, tensor.sizes);
    std::memcpy(tensor.bytes.data(), words.data(), tensor.bytes.size());
    return tensor;
  };
  return cache;
}

/// Some unused words, positions, head mask, counters, and a mask that hides every third key.
CaseInput append_attention_control(const AppendAttentionVariant& v, AttentionControl& control) {
  const RopeVariant& rope = v.rope;
  ControlLayout layout(3);
  control.key_counts = layout.add<uint32_t>(rope.rows);
  control.key_count_extra = 1;
  if (v.head_mask || v.sinks)
    control.head_mask = layout.add<float>(uint64_t{rope.heads} * (v.sinks ? 2 : 1));
  if (v.split_counters) control.split_counters = layout.add<uint32_t>(rope.rows * rope.heads);
  if (v.mask) control.bias = layout.add<float>(rope.context);
  if (rope.page > 0) control.pages = layout.add<uint32_t>(rope.pages().numbers().size());
  ControlWords words(layout.words());
  words.fill(ControlArray<uint32_t>{0, 3}, 0xdeadbeef);
  words.set(*control.key_counts, rope.positions);
  if (control.pages) words.set(*control.pages, rope.pages().numbers());
  for (uint32_t head = 0; control.head_mask && head < rope.heads; ++head)
    words.set(*control.head_mask, head, 0.5f * static_cast<float>(head));
  for (uint32_t head = 0; v.sinks && head < rope.heads; ++head)
    words.set(*control.head_mask, rope.heads + head, 1.5f * static_cast<float>(head % 4));
  for (uint32_t key = 0; control.bias && key < rope.context; ++key)
    words.set(*control.bias, key,
              key % 3 == 0 ? -std::numeric_limits<float>::infinity() : 0.25f * (key % 5));
  return words_input(words.words());
}

OpCase append_attention_case(const AppendAttentionVariant& v, KernelTypes types) {
  const RopeVariant& rope = v.rope;
  AttentionOptions options = {.heads = rope.heads,
                              .kv_heads = rope.kv_heads,
                              .head_size = rope.head_size,
                              .value_size = rope.head_size,
                              .scale = static_cast<float>(1 / std::sqrt(rope.head_size)),
                              .causal = true,
                              .window = v.window,
                              .soft_cap = v.soft_cap,
                              .bias = v.mask ? AttentionBias::kMask : AttentionBias::kNone,
                              .sinks = v.sinks};
  AttentionControl control;
  const CaseInput words = append_attention_control(v, control);
  OpCase c;
  c.types = types;
  c.name = fmt::format("r{}_c{}_h{}x{}_d{}_of{}.at{}", rope.rows, rope.context, rope.heads,
                       rope.kv_heads, rope.rotary_size, rope.head_size, rope.positions[0]);
  if (rope.interleaved) c.name += ".interleaved";
  if (rope.gains) c.name += ".gains";
  if (v.window != 0) c.name += fmt::format(".window_{}", v.window);
  if (v.soft_cap != 0) c.name += ".soft_cap";
  if (v.head_mask) c.name += ".head_mask";
  if (v.sinks) c.name += ".sinks";
  if (v.mask) c.name += ".mask";
  if (v.split_counters) c.name += ".shares";
  if (rope.page > 0) c.name += fmt::format(".pages_{}", rope.page);
  // The short list has only the smallest and the largest groups.
  c.must_pass = rope.rows > 1 && rope.head_size <= 64 && rope.heads != 6 && rope.heads != 8;

  const uint64_t columns = uint64_t{rope.heads + 2 * rope.kv_heads} * rope.head_size;
  const uint64_t angle_rows = rope.angle_rows > 0 ? rope.angle_rows : rope.context;
  c.inputs = {normal_input({rope.rows, 1, columns}, types.activation),
              append_attention_cache(rope, types.weight),
              angle_input(angle_rows, std::max(rope.rotary_size, 4u)), words};
  if (rope.gains) c.inputs.push_back(normal_input({2, rope.head_size}, DataType::kF32));
  const bool counted = v.split_counters;
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    AttentionOptions bound = options;
    bound.control = control;
    bound.control->tensor = inputs[3];
    std::optional<RopeOptions> rotation;
    if (rope.rotary_size > 0) {
      rotation = RopeOptions{.heads = rope.heads,
                             .kv_heads = rope.kv_heads,
                             .head_size = rope.head_size,
                             .rotary_size = rope.rotary_size,
                             .interleaved = rope.interleaved,
                             .angles = inputs[2],
                             .epsilon = kRopeEpsilon,
                             .control = inputs[3],
                             .positions = *control.key_counts,
                             .pages = control.pages};
      if (rope.gains) rotation->gains = inputs[4];
    }
    const Tensor result = append_attention(builder, inputs[0], inputs[1], rotation, bound);
    std::vector<Tensor> outputs = {result, inputs[1]};
    if (counted) outputs.push_back(inputs[3]);  // must be unchanged
    return outputs;
  };
  c.reference = [=](std::span<const CpuTensor> inputs, const Arithmetic& arithmetic) {
    AttentionOptions bound = options;
    bound.control = control;
    const std::vector<CpuTensor> appended = rope_append_reference(rope, inputs);
    const AttentionColumns at = {.q = 0, .k = 0, .v = rope.kv_heads * rope.head_size};
    std::vector<CpuTensor> outputs = {
        attention_reference(appended[0], appended[1], inputs[3], at, bound, arithmetic).result,
        appended[1]};
    if (counted) outputs.push_back(inputs[3]);
    return outputs;
  };
  return c;
}

class AppendAttentionCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,context,heads,kv_heads,head_size"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 1024, 12, 12, 64}, {1, 2048, 9, 3, 64}, {1, 1024, 32, 8, 64}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 5 || std::ranges::count(shape, uint64_t{0}) > 0 || shape[4] % 2 != 0 ||
        shape[2] % shape[3] != 0 || shape[4] % block_elements(types.weight) != 0) {
      throw ShapeError(
          "append_attention",
          "a shape is five positive numbers, heads a multiple of those of keys, and the last one "
          "even",
          "give rows,context,heads,kv_heads,head_size such as 1,1024,12,12,64");
    }
    const auto head_size = static_cast<uint32_t>(shape[4]);
    const std::vector<uint32_t> positions(shape[0], static_cast<uint32_t>(shape[1] - 1));
    return append_attention_case({.rope = {.heads = static_cast<uint32_t>(shape[2]),
                                           .kv_heads = static_cast<uint32_t>(shape[3]),
                                           .head_size = head_size,
                                           .rotary_size = head_size,
                                           .rows = shape[0],
                                           .context = shape[1],
                                           .positions = positions},
                                  .split_counters = true},
                                 types);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    const auto add = [&](AppendAttentionVariant v) {
      if (v.rope.head_size % block_elements(types.weight) != 0) return;
      v.rope.rows = v.rope.positions.size();
      cases.push_back(append_attention_case(v, types));
    };
    for (uint32_t group : {1, 3, 4, 6}) {
      add({.rope = {.heads = 2 * group,
                    .kv_heads = 2,
                    .head_size = 64,
                    .rotary_size = 64,
                    .context = 300,
                    .positions = {0, 127, 128, 299, 300, 0xfffffffe}}});
    }
    for (bool interleaved : {false, true}) {
      for (bool gains : {false, true}) {
        add({.rope = {.heads = 5,
                      .kv_heads = 1,
                      .head_size = 96,
                      .rotary_size = 64,
                      .context = 40,
                      .positions = {39, 5},
                      .interleaved = interleaved,
                      .gains = gains,
                      .angle_rows = 6}});
      }
    }
    add({.rope = {.heads = 2,
                  .kv_heads = 2,
                  .head_size = 32,
                  .rotary_size = 0,
                  .context = 24,
                  .positions = {3, 0, 23}}});
    add({.rope = {.head_size = 20, .rotary_size = 12, .context = 24, .positions = {3, 22}}});
    add({.rope = {.heads = 3,
                  .kv_heads = 1,
                  .head_size = 18,
                  .rotary_size = 12,
                  .context = 9,
                  .positions = {7, 8}}});
    // An odd number of pairs, in heads of whole fours and in others.
    for (uint32_t head_size : {14, 16})
      add({.rope = {.heads = 4,
                    .kv_heads = 2,
                    .head_size = head_size,
                    .rotary_size = 14,
                    .context = 40,
                    .positions = {39, 5}}});
    add({.rope = {.heads = 4,
                  .kv_heads = 1,
                  .head_size = 128,
                  .rotary_size = 128,
                  .context = 140,
                  .positions = {130},
                  .gains = true}});
    add({.rope = {.context = 96, .positions = {63, 0, 95, 96}, .page = 32}});
    // Splits: a full one, one with only the position's own key, two that a window leaves.
    add({.rope = {.context = 1100, .positions = {1023, 1024, 1099, 255, 256, 1100}},
         .head_mask = true,
         .sinks = true,
         .split_counters = true});
    add({.rope = {.context = 1100, .positions = {1024, 400}, .interleaved = true},
         .window = 300,
         .soft_cap = 2,
         .split_counters = true});
    add({.rope = {.heads = 5,
                  .kv_heads = 1,
                  .head_size = 32,
                  .rotary_size = 32,
                  .context = 700,
                  .positions = {600}},
         .mask = true,
         .split_counters = true});
    return cases;
  }
};

}  // namespace

const OpCases& append_attention_cases() {
  static const AppendAttentionCases cases;
  return cases;
}

}  // namespace mulciber::conformance
