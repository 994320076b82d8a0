#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/block_input.h"
#include "conformance/bounds.h"
#include "conformance/op_case.h"
#include "conformance/ops/norm_reference.h"
#include "mulciber/error.h"
#include "ops/rope.h"

namespace mulciber::conformance {
namespace {

constexpr float kEpsilon = 1e-6f;

struct Variant {
  uint32_t heads = 4, kv_heads = 2, head_size = 64, rotary_size = 64;
  uint64_t rows = 1, length = 1, context = 8;
  uint32_t position = 0;
  std::vector<uint32_t> positions = {};  // one for each row
  bool interleaved = false;
  bool gains = false;
  uint64_t angle_rows = 0;  // 0: as many as the cache has positions
};

/// Cosines and sines of every position, as angles are for base 10000; f32 rounds them when they are
/// drawn.
CaseInput angle_input(uint64_t positions, uint32_t rotary_size) {
  return {
      {positions, rotary_size}, DataType::kF32, [=](std::vector<double>& values, std::mt19937&) {
        const uint32_t half = rotary_size / 2;
        for (uint64_t position = 0; position < positions; ++position) {
          for (uint32_t i = 0; i < half; ++i) {
            const double angle =
                static_cast<double>(position) * std::pow(10000, -2.0 * i / rotary_size);
            values[position * rotary_size + i] = std::cos(angle);
            values[position * rotary_size + half + i] = std::sin(angle);
          }
        }
      }};
}

/// One head of queries or keys: normalized where there are gains, and rotated.
std::vector<Bounded> turned(const Variant& v, const double* head, const double* gains,
                            const double* angles) {
  std::vector<Bounded> x(head, head + v.head_size);
  if (gains) {
    rms_norm_reference(x, kEpsilon);
    for (uint32_t i = 0; i < v.head_size; ++i) x[i] = x[i] * Bounded(gains[i]);
  }
  const uint32_t half = v.rotary_size / 2;
  for (uint32_t i = 0; i < half; ++i) {
    Bounded &a = x[v.interleaved ? 2 * i : i], &b = x[v.interleaved ? 2 * i + 1 : i + half];
    const Bounded c(angles[i]), s(angles[half + i]), first = a * c - b * s;
    b = b * c + a * s;
    a = first;
  }
  return x;
}

std::vector<HostTensor> reference(const Variant& v, std::span<const HostTensor> inputs) {
  HostTensor qkv = inputs[0], cache = inputs[1];
  const HostTensor& angles = inputs[2];
  const uint64_t columns = qkv.shape.columns(), key_columns = uint64_t{v.kv_heads} * v.head_size;
  // What becomes of keys and values in qkv is left open.
  qkv.bounds.assign(qkv.values.size(), std::numeric_limits<double>::infinity());
  cache.bounds.assign(cache.values.size(), 0);
  for (uint64_t row = 0; row < v.rows; ++row) {
    for (uint64_t i = 0; i < v.length; ++i) {
      const uint64_t position = uint64_t{v.positions.empty() ? v.position : v.positions[row]} + i;
      const double* angle = &angles.values[std::min(position, angles.shape[0] - 1) * v.rotary_size];
      const uint64_t from = (row * v.length + i) * columns,
                     to = (row * v.context + position) * 2 * key_columns;
      for (uint32_t head = 0; head < v.heads + v.kv_heads; ++head) {
        const bool key = head >= v.heads;
        if (key && position >= v.context) break;
        const double* gains = v.gains ? &inputs[4].values[key ? v.head_size : 0] : nullptr;
        const std::vector<Bounded> x =
            turned(v, &inputs[0].values[from + head * v.head_size], gains, angle);
        if (key && is_block_type(cache.type)) {
          put_q8_0(cache, to + (head - v.heads) * v.head_size, x);
          continue;
        }
        for (uint32_t j = 0; j < v.head_size; ++j) {
          if (key) {
            put(cache, to + (head - v.heads) * v.head_size + j, x[j]);
          } else {
            put(qkv, from + head * v.head_size + j, x[j]);
          }
        }
      }
      if (position >= v.context) continue;
      const double* values = &inputs[0].values[from + columns - key_columns];
      if (is_block_type(cache.type)) {
        put_q8_0(cache, to + key_columns, std::vector<Bounded>(values, values + key_columns));
        continue;
      }
      for (uint64_t j = 0; j < key_columns; ++j) put(cache, to + key_columns + j, values[j]);
    }
  }
  return {qkv, cache};
}

OpCase build_case(const Variant& v, KernelTypes types) {
  OpCase c;
  c.types = types;
  c.name = fmt::format("r{}_q{}_c{}_h{}x{}_d{}_of{}.at{}", v.rows, v.length, v.context, v.heads,
                       v.kv_heads, v.rotary_size, v.head_size, v.position);
  if (v.interleaved) c.name += ".interleaved";
  if (v.gains) c.name += ".gains";
  if (!v.positions.empty()) c.name += ".positions";
  if (v.angle_rows > 0) c.name += fmt::format(".angles_{}", v.angle_rows);
  c.must_pass = (v.rows > 1 || v.rotary_size < v.head_size) && v.gains == v.interleaved;

  const uint64_t columns = uint64_t{v.heads + 2 * v.kv_heads} * v.head_size;
  ControlWords control(3, 0xffffffff);
  const ControlArray<uint32_t> positions =
      control.append(v.positions.empty() ? std::vector{v.position} : v.positions);
  c.inputs = {normal_input({v.rows, v.length, columns}, types.activation),
              normal_input({v.rows, v.context, 2ull * v.kv_heads * v.head_size}, types.weight),
              angle_input(v.angle_rows > 0 ? v.angle_rows : v.context, v.rotary_size),
              words_input(control.words())};
  if (v.gains) c.inputs.push_back(normal_input({2, v.head_size}, DataType::kF32));
  c.build = [=](ProgramBuilder& builder, std::span<const Tensor> inputs) {
    RopeOptions options;
    options.heads = v.heads;
    options.kv_heads = v.kv_heads;
    options.head_size = v.head_size;
    options.rotary_size = v.rotary_size;
    options.interleaved = v.interleaved;
    options.angles = inputs[2];
    if (v.gains) options.gains = inputs[4];
    options.epsilon = kEpsilon;
    options.control = inputs[3];
    options.positions = positions;
    return std::vector<Tensor>{rope_append(builder, inputs[0], inputs[1], options).tensor,
                               inputs[1]};
  };
  c.reference = [=](std::span<const HostTensor> inputs, const Arithmetic&) {
    return reference(v, inputs);
  };
  return c;
}

class RopeAppendCases : public OpCases {
 public:
  std::string shape_format() const override { return "rows,length,heads,kv_heads,head_size"; }
  std::vector<std::vector<uint64_t>> bench_shapes() const override {
    return {{1, 1, 12, 12, 64},
            {1, 1, 32, 8, 128},
            {1, 64, 12, 12, 64},
            {1, 512, 32, 8, 128},
            {8, 1, 32, 8, 128}};
  }
  OpCase make(std::span<const uint64_t> shape, KernelTypes types) const override {
    if (shape.size() != 5 || std::ranges::count(shape, uint64_t{0}) > 0 || shape[4] % 4 != 0) {
      throw ShapeError("rope_append", "a shape is five positive numbers, the last a multiple of 4",
                       "give rows,length,heads,kv_heads,head_size such as 1,64,12,12,64");
    }
    const auto head_size = static_cast<uint32_t>(shape[4]);
    return build_case({.heads = static_cast<uint32_t>(shape[2]),
                       .kv_heads = static_cast<uint32_t>(shape[3]),
                       .head_size = head_size,
                       .rotary_size = head_size,
                       .rows = shape[0],
                       .length = shape[1],
                       .context = shape[1] + 8,
                       .position = 5},
                      types);
  }
  std::vector<OpCase> samples(KernelTypes types) const override {
    std::vector<OpCase> cases;
    for (bool interleaved : {false, true}) {
      for (bool gains : {false, true}) {
        const auto add = [&](Variant v) {
          if (v.head_size % block_elements(types.weight) != 0) return;
          v.interleaved = interleaved;
          v.gains = gains;
          cases.push_back(build_case(v, types));
        };
        for (uint32_t head_size : {4, 8, 12, 20, 32, 64, 80, 96, 128, 256}) {
          add({.head_size = head_size,
               .rotary_size = head_size,
               .rows = 2,
               .length = 3,
               .context = 9,
               .position = 4});
        }
        add({.heads = 1,
             .kv_heads = 1,
             .head_size = 64,
             .rotary_size = 16,
             .length = 2,
             .position = 1});
        add({.heads = 3,
             .kv_heads = 1,
             .head_size = 18,
             .rotary_size = 12,
             .rows = 2,
             .position = 7});
        add({.heads = 6,
             .kv_heads = 2,
             .head_size = 80,
             .rotary_size = 32,
             .length = 5,
             .position = 2});
        add({.rows = 4, .length = 2, .context = 40, .positions = {39, 5, 17, 38}});
        // Past the end of cache and table: partly, wholly, and so far that position + token wraps
        // around.
        add({.length = 4, .context = 6, .position = 4});
        add({.length = 2, .context = 6, .position = 6, .angle_rows = 4});
        add({.length = 3, .context = 6, .position = 0xfffffffe});
        add({.length = 2, .context = 300, .position = 298, .angle_rows = 512});
        // Above 1 MiB in all: several nodes where the storage range is that small.
        add({.rows = 7,
             .context = 900,
             .positions = {0, 899, 5, 6, 500, 77, 900},
             .angle_rows = 900});
      }
    }
    return cases;
  }
};

}  // namespace

const OpCases& rope_append_cases() {
  static const RopeAppendCases cases;
  return cases;
}

}  // namespace mulciber::conformance
