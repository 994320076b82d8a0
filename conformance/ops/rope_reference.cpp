#include "conformance/ops/rope_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/block_input.h"
#include "conformance/bounds.h"
#include "conformance/ops/norm_reference.h"

namespace mulciber::conformance {
namespace {

/// One head of queries or keys, rotated; normalized first where there are gains.
std::vector<Bounded> turned_head(const RopeVariant& v, const double* head, const double* gains,
                                 const double* angles) {
  std::vector<Bounded> x(head, head + v.head_size);
  if (gains) {
    rms_norm_reference(x, kRopeEpsilon);
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

}  // namespace

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

std::vector<CpuTensor> rope_append_reference(const RopeVariant& v,
                                             std::span<const CpuTensor> inputs) {
  CpuTensor qkv = inputs[0], cache = inputs[1];
  const CpuTensor& angles = inputs[2];
  const uint64_t columns = qkv.shape.columns(), key_columns = uint64_t{v.kv_heads} * v.head_size,
                 value_columns = v.value_columns();
  // Keys and values in qkv become undefined.
  qkv.bounds.assign(qkv.values.size(), std::numeric_limits<double>::infinity());
  cache.bounds.assign(cache.values.size(), 0);
  for (uint64_t row = 0; row < v.rows; ++row) {
    for (uint64_t i = 0; i < v.length; ++i) {
      const uint64_t position = uint64_t{v.positions.empty() ? v.position : v.positions[row]} + i;
      const double* angle = &angles.values[std::min(position, angles.shape[0] - 1) * v.rotary_size];
      const uint64_t from = (row * v.length + i) * columns,
                     to = position < v.context ? v.pages().place(row, position) * v.cache_columns()
                                               : 0;
      for (uint32_t head = 0; head < v.heads + v.kv_heads; ++head) {
        const bool key = head >= v.heads;
        if (key && position >= v.context) break;
        const double* gains = v.gains ? &inputs[4].values[key ? v.head_size : 0] : nullptr;
        const std::vector<Bounded> x =
            turned_head(v, &inputs[0].values[from + head * v.head_size], gains, angle);
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
      const double* values = &inputs[0].values[from + columns - value_columns];
      if (is_block_type(cache.type)) {
        put_q8_0(cache, to + key_columns, std::vector<Bounded>(values, values + value_columns));
        continue;
      }
      for (uint64_t j = 0; j < value_columns; ++j) put(cache, to + key_columns + j, values[j]);
    }
  }
  return {qkv, cache};
}

}  // namespace mulciber::conformance
