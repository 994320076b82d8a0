#include "conformance/ops/attention_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/bounds.h"

namespace mulciber::conformance {
namespace {

uint32_t word(const HostTensor& control, uint64_t index) {
  return static_cast<uint32_t>(control.values[index]);
}

/// What a query sees: keys [first, end), and where it stands among them.
struct View {
  int64_t first, end, position;
};

View view_of(const HostTensor& control, const AttentionOptions& options, uint64_t kv_row, uint64_t i,
             uint64_t q_len, uint64_t kv_len) {
  int64_t count = static_cast<int64_t>(kv_len);
  if (options.control && options.control->key_counts >= 0) {
    const uint64_t at = options.control->key_counts + kv_row * options.control->key_count_stride;
    count = int64_t{word(control, at)} + options.control->key_count_extra;
  }
  View view{0, std::min<int64_t>(count, static_cast<int64_t>(kv_len)), static_cast<int64_t>(i)};
  view.position += options.query_offset ? *options.query_offset : count - static_cast<int64_t>(q_len);
  if (options.window != 0) {
    view.first = std::max<int64_t>(view.position - options.window + 1, 0);
    view.end = std::min<int64_t>(view.end, view.position + options.window);
  }
  if (options.causal) view.end = std::min(view.end, view.position + 1);
  return view;
}

/// The number added to a score of query i of a row.
double bias_of(const HostTensor& control, const AttentionOptions& options, uint64_t row, uint64_t head, uint64_t i,
               uint64_t q_len, const View& view, int64_t key, uint64_t kv_len) {
  if (options.bias == AttentionBias::kNone) return 0;
  uint64_t at = 0;
  if (options.bias == AttentionBias::kRelative) {
    const int64_t span = options.bias_span;
    at = head * (2 * span + 1) + std::clamp(key - view.position, -span, span) + span;
  } else {
    const bool per_row = options.bias == AttentionBias::kMaskPerRow || options.bias == AttentionBias::kMaskPerRowAndHead;
    const bool per_head = options.bias == AttentionBias::kMaskPerHead || options.bias == AttentionBias::kMaskPerRowAndHead;
    const uint64_t line = (per_row ? row : 0) * (per_head ? options.heads : 1) + (per_head ? head : 0);
    at = (line * q_len + i) * kv_len + key;
  }
  return std::bit_cast<float>(word(control, options.control->bias + at));
}

}  // namespace

AttentionReference attention_reference(const HostTensor& q, const HostTensor& kv,
                                       const HostTensor& control, const AttentionColumns& columns,
                                       const AttentionOptions& options) {
  const uint64_t rows = q.shape[0], q_len = q.shape[1], kv_len = kv.shape[1];
  const uint64_t q_columns = q.shape.columns(), kv_columns = kv.shape.columns();
  const uint64_t heads = options.heads, value_size = options.value_size;
  AttentionReference expected;
  const auto zeros = [](Shape shape, DataType type) {
    return HostTensor{shape, type, std::vector<double>(shape.elements()), std::vector<double>(shape.elements())};
  };
  expected.result = zeros({rows, q_len, heads * value_size}, q.type);
  expected.map = zeros({rows, heads, q_len, kv_len}, DataType::kF32);
  const double scale_value = options.scale, scale_size = std::fabs(scale_value);
  const double grain = grain_of(q.values) * grain_of(kv.values) * std::min(1.0, grain_of({&scale_value, 1}));
  const auto error_at = [](const HostTensor& tensor, const double* value) {
    return tensor.bounds.empty() ? 0 : tensor.bounds[value - tensor.values.data()];
  };
  std::vector<Bounded> weights(kv_len);
  std::vector<int64_t> keys;  // that a query sees

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
        const View view = view_of(control, options, kv_row, i, q_len, kv_len);
        const double* query =
            &q.values[(row * q_len + i) * q_columns + columns.q + head * options.head_size];
        const size_t map = ((row * heads + head) * q_len + i) * kv_len;
        const size_t result = (row * q_len + i) * heads * value_size + head * value_size;
        Bounded maximum(-std::numeric_limits<double>::infinity());
        double least = std::numeric_limits<double>::infinity();
        keys.clear();
        for (int64_t key = view.first; key < view.end; ++key) {
          const double bias = bias_of(control, options, row, head, i, q_len, view, key, kv_len);
          if (bias < -1e30) continue;
          const double* k = key_at(key) + columns.k + kv_head * options.head_size;
          double score = 0, size = 0, error = 0;
          for (uint64_t d = 0; d < options.head_size; ++d) {
            score += query[d] * k[d];
            size += std::fabs(query[d] * k[d]);
            const double query_error = error_at(q, query + d), key_error = error_at(kv, k + d);
            error += query_error * (std::fabs(k[d]) + key_error) + std::fabs(query[d]) * key_error;
          }
          // The scale may be multiplied into the query or into the score.
          const bool exact = sums_exactly(grain, size * std::max(scale_size, 1.0));
          const double summing = exact ? 0 : sum_error(options.head_size + 5.0, size);
          weights[key] = {score * scale_value, (error + summing) * scale_size};
          if (options.soft_cap != 0) {
            weights[key] = Bounded(options.soft_cap) * tanh(weights[key] / Bounded(options.soft_cap));
          }
          if (bias != 0) weights[key] = weights[key] + Bounded(bias);
          keys.push_back(key);
          maximum = max(maximum, weights[key]);
          least = std::min(least, weights[key].value);
        }
        if (keys.empty()) continue;  // zeros
        double sum = 0, error = 0;
        for (int64_t key : keys) {
          weights[key] = exp(weights[key] - maximum);
          sum += weights[key].value;
          error += weights[key].error;
        }
        // Online softmax: what was summed is scaled anew with every block of keys.
        const double blocks = std::ceil(static_cast<double>(keys.size()) / 16) + 7, count = static_cast<double>(keys.size());
        const double rescaled = blocks * 0x1p-23;
        const Bounded total(sum, error + sum_error(count, sum) + rescaled * sum);
        // In the result the factors of scaling are the same above and below the line; in the map, whose
        // weights are taken at the end, they are not.
        const double factors = (4 * blocks + 2 * (maximum.value - least)) * 0x1p-23;
        const Bounded map_total(sum, total.error + factors * sum);
        const Bounded inverse = Bounded(factor) / total;
        for (int64_t key : keys) put(expected.map, map + key, weights[key] / map_total);
        for (uint64_t d = 0; d < value_size; ++d) {
          double value = 0, size = 0, value_error = 0;
          for (int64_t key : keys) {
            const double* v = key_at(key) + columns.v + kv_head * value_size + d;
            value += weights[key].value * *v;
            size += weights[key].value * std::fabs(*v);
            value_error += weights[key].error * std::fabs(*v) + (weights[key].value + weights[key].error) * error_at(kv, v);
          }
          put(expected.result, result + d,
              Bounded(value, value_error + sum_error(count + 2, size) + rescaled * size) * inverse);
        }
      }
    }
  }
  return expected;
}

}  // namespace mulciber::conformance
