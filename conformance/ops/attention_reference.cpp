#include "conformance/ops/attention_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace mulciber::conformance {
namespace {

uint32_t word(const HostTensor& control, uint64_t index) {
  return static_cast<uint32_t>(control.values[index]);
}

/// Keys [0, result) that query i of a row may see.
int64_t visible(const HostTensor& control, const AttentionOptions& options, uint64_t kv_row,
                uint64_t i, uint64_t q_len, uint64_t kv_len) {
  int64_t keys = static_cast<int64_t>(kv_len);
  if (options.control && options.control->key_counts >= 0) {
    const uint64_t at = options.control->key_counts + kv_row * options.control->key_count_stride;
    keys = std::min<int64_t>(keys, int64_t{word(control, at)} + options.control->key_count_extra);
  }
  if (!options.causal) return keys;
  const int64_t last = static_cast<int64_t>(i) + keys - static_cast<int64_t>(q_len);
  return std::clamp<int64_t>(last + 1, 0, keys);
}

}  // namespace

AttentionReference attention_reference(const HostTensor& q, const HostTensor& kv,
                                       const HostTensor& control, const AttentionColumns& columns,
                                       const AttentionOptions& options) {
  const uint64_t rows = q.shape[0], q_len = q.shape[1], kv_len = kv.shape[1];
  const uint64_t q_columns = q.shape.columns(), kv_columns = kv.shape.columns();
  const uint64_t heads = options.heads, value_size = options.value_size;
  AttentionReference expected;
  expected.result = {{rows, q_len, heads * value_size}, q.type, {}};
  expected.result.values.assign(expected.result.shape.elements(), 0);
  expected.map = {{rows, heads, q_len, kv_len}, DataType::kF32, {}};
  expected.map.values.assign(expected.map.shape.elements(), 0);

  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t kv_row = row / options.rows_per_kv;
    const auto key_at = [&](int64_t key) {
      uint64_t from = kv_row;
      if (options.control && options.control->ancestry >= 0) {
        from = word(control, options.control->ancestry + row * kv_len + key);
      }
      return &kv.values[(from * kv_len + key) * kv_columns];
    };
    for (uint64_t head = 0; head < heads; ++head) {
      const uint64_t kv_head = head / (heads / options.kv_heads);
      double factor = 1;
      if (options.control && options.control->head_mask >= 0) {
        factor = std::bit_cast<float>(word(control, options.control->head_mask + head));
      }
      for (uint64_t i = 0; i < q_len; ++i) {
        const int64_t keys = visible(control, options, kv_row, i, q_len, kv_len);
        const double* query =
            &q.values[(row * q_len + i) * q_columns + columns.q + head * options.head_size];
        double* map = &expected.map.values[((row * heads + head) * q_len + i) * kv_len];
        double* result =
            &expected.result.values[(row * q_len + i) * heads * value_size + head * value_size];
        double maximum = -std::numeric_limits<double>::infinity(), total = 0;
        for (int64_t key = 0; key < keys; ++key) {
          const double* k = key_at(key) + columns.k + kv_head * options.head_size;
          double score = 0;
          for (uint64_t d = 0; d < options.head_size; ++d) score += query[d] * k[d];
          map[key] = score * options.scale;
          maximum = std::max(maximum, map[key]);
        }
        for (int64_t key = 0; key < keys; ++key) total += map[key] = std::exp(map[key] - maximum);
        for (int64_t key = 0; key < keys; ++key) {
          map[key] /= total;
          const double* v = key_at(key) + columns.v + kv_head * value_size;
          for (uint64_t d = 0; d < value_size; ++d) result[d] += factor * map[key] * v[d];
        }
      }
    }
  }
  return expected;
}

}  // namespace mulciber::conformance
