#include "conformance/ops/attention_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/bounds.h"

namespace mulciber::conformance {
namespace {

/// An element of a control array of numbers.
template <typename T>
T number(const CpuTensor& control, const ControlArray<T>& array, uint64_t index) {
  return std::bit_cast<T>(static_cast<uint32_t>(control.values[array.word + index]));
}

/// The keys [first, end) that a query sees, and its position among them.
struct View {
  int64_t first, end, position, count;
};

View view_of(const CpuTensor& control, const AttentionOptions& options, uint64_t kv_row, uint64_t i,
             uint64_t q_len, uint64_t kv_len) {
  int64_t count = static_cast<int64_t>(kv_len);
  if (options.control && options.control->key_counts) {
    const ControlArray<uint32_t>& counts = *options.control->key_counts;
    count = int64_t{number(control, counts, kv_row * stride_of(counts))} +
            options.control->key_count_extra;
  }
  View view{0, std::min<int64_t>(count, static_cast<int64_t>(kv_len)), static_cast<int64_t>(i),
            count};
  view.position +=
      options.query_offset ? *options.query_offset : count - static_cast<int64_t>(q_len);
  if (options.window != 0 && !options.global_tokens) {
    view.first = std::max<int64_t>(view.position - options.window + 1, 0);
    view.end = std::min<int64_t>(view.end, view.position + options.window);
  }
  if (options.causal) view.end = std::min(view.end, view.position + 1);
  return view;
}

bool is_global(const CpuTensor& control, const AttentionOptions& options, int64_t position,
               uint64_t kv_len) {
  if (position < 0 || position >= static_cast<int64_t>(kv_len)) return false;
  return (number(control, *options.control->globals, position / 32) >> (position % 32) & 1) != 0;
}

/// Whether window, global tokens and pattern let a query see a key inside its view.
bool allowed(const CpuTensor& control, const AttentionOptions& options, const View& view,
             int64_t key, uint64_t kv_len) {
  if (options.global_tokens && options.window != 0 &&
      std::abs(view.position - key) >= options.window &&
      !is_global(control, options, key, kv_len) &&
      !is_global(control, options, view.position, kv_len)) {
    return false;
  }
  const KeyPattern& pattern = options.pattern;
  if (pattern.block_queries == 0) return true;
  const int64_t block = view.position / int64_t{pattern.block_queries};
  if (view.position < 0 || block >= pattern.query_blocks) return false;
  const ControlArray<uint32_t>& words = *options.control->pattern;
  const uint32_t end = number(control, words, block + 1);
  for (uint32_t at = number(control, words, block); at < end; ++at) {
    if (number(control, words, at) == key / pattern.block_keys) return true;
  }
  return false;
}

/// The center of local attention.
Bounded center_of(const CpuTensor& control, const AttentionOptions& options, const View& view,
                  uint64_t query, uint64_t head, uint64_t kv_len, int64_t count) {
  if (options.center != AttentionCenter::kPredicted) return {static_cast<double>(view.position)};
  const ControlArray<float>& centers = *options.control->centers;
  const uint64_t at = query * options.heads + head;
  const Bounded logit(number(control, centers, at),
                      control.bounds.empty() ? 0 : control.bounds[centers.word + at]);
  return Bounded(static_cast<double>(std::min<int64_t>(count, static_cast<int64_t>(kv_len)))) /
         (Bounded(1) + exp(Bounded(0) - logit));
}

/// The number added to a score of query i of a row.
double bias_of(const CpuTensor& control, const AttentionOptions& options, uint64_t row,
               uint64_t head, uint64_t i, uint64_t q_len, const View& view, int64_t key,
               uint64_t kv_len) {
  if (options.bias == AttentionBias::kNone) return 0;
  uint64_t at = 0;
  if (options.bias == AttentionBias::kRelative) {
    const int64_t span = options.bias_span;
    at = head * (2 * span + 1) + std::clamp(key - view.position, -span, span) + span;
  } else {
    const bool per_row = options.bias == AttentionBias::kMaskPerRow ||
                         options.bias == AttentionBias::kMaskPerRowAndHead;
    const bool per_head = options.bias == AttentionBias::kMaskPerHead ||
                          options.bias == AttentionBias::kMaskPerRowAndHead;
    const uint64_t line =
        (per_row ? row : 0) * (per_head ? options.heads : 1) + (per_head ? head : 0);
    at = (line * q_len + i) * kv_len + key;
  }
  return number(control, *options.control->bias, at);
}

/// The error of each number of a tensor after rounding to f16.
std::vector<double> half_errors(const CpuTensor& tensor) {
  std::vector<double> errors(tensor.values.size());
  for (size_t i = 0; i < errors.size(); ++i) {
    const double known = tensor.bounds.empty() ? 0 : tensor.bounds[i];
    errors[i] = stored_error(DataType::kF16, tensor.values[i], known);
  }
  return errors;
}

/// Sums errors that are independent of each other, such as roundings of operands.
struct IndependentErrors {
  double sum = 0, squares = 0;
  void add(double error) {
    sum += error;
    squares += error * error;
  }
  double bound() const { return independent_errors(sum, squares); }
};

/// The error of rounding a weight to f16. A weight is at most 1; kernels may scale it up to 2^14 to
/// use the range of f16.
double half_weight_error(Bounded weight) {
  constexpr double kScale = 0x1p14;
  return stored_error(DataType::kF16, weight.value * kScale, weight.error * kScale) / kScale;
}

}  // namespace

Bounded score_term(const AttentionOptions& options, Bounded q, Bounded k, double v) {
  switch (options.score) {
    case AttentionScore::kDot: return q * k;
    case AttentionScore::kAdditive: return tanh(q + k) * Bounded(v);
    case AttentionScore::kLeaky: {
      const Bounded sum = q + k;
      const Bounded low = sum * Bounded(options.leaky_slope);
      return (sum.value < 0 ? Bounded(low.value, std::max(low.error, sum.error)) : sum) *
             Bounded(v);
    }
    case AttentionScore::kDistance: {
      const Bounded distance = q - k;
      return Bounded(0) - distance * distance;
    }
  }
  return {};
}

AttentionReference attention_reference(const CpuTensor& q, const CpuTensor& kv,
                                       const CpuTensor& control, const AttentionColumns& columns,
                                       const AttentionOptions& options,
                                       const Arithmetic& arithmetic) {
  // Rows with keys in f32 never use matrix units, and matrix units serve only scaled products.
  const bool halves = arithmetic.half_operands && kv.type != DataType::kF32 &&
                      options.score == AttentionScore::kDot && !options.hard &&
                      options.center == AttentionCenter::kNone;
  const uint64_t rows = q.shape[0], q_len = q.shape[1];
  const auto pages = options.control ? options.control->pages : std::nullopt;
  const uint64_t row_pages = pages ? pages->count / (rows / options.rows_per_kv) : 1;
  const uint64_t kv_len = row_pages * kv.shape[1];
  const uint64_t q_columns = q.shape.columns(), kv_columns = kv.shape.columns();
  const uint64_t heads = options.heads, value_size = options.value_size;
  AttentionReference expected;
  const auto zeros = [](Shape shape, DataType type) {
    return CpuTensor{shape, type, std::vector<double>(shape.elements()),
                     std::vector<double>(shape.elements())};
  };
  expected.result = zeros({rows, q_len, heads * value_size}, q.type);
  expected.map = zeros({rows, heads, q_len, kv_len}, DataType::kF32);
  const double scale_value = options.scale, scale_size = std::fabs(scale_value);
  const double grain =
      grain_of(q.values) * grain_of(kv.values) * std::min(1.0, grain_of({&scale_value, 1}));
  const auto error_at = [](const std::vector<double>& errors, const CpuTensor& tensor,
                           const double* value) {
    return errors.empty() ? 0 : errors[value - tensor.values.data()];
  };
  const auto q_error = [&](const double* value) { return error_at(q.bounds, q, value); };
  const auto kv_error = [&](const double* value) { return error_at(kv.bounds, kv, value); };
  std::vector<double> q_halves, kv_halves;
  if (halves) q_halves = half_errors(q), kv_halves = half_errors(kv);
  std::vector<Bounded> weights(kv_len);
  std::vector<int64_t> keys;  // keys that a query sees

  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t kv_row = row / options.rows_per_kv;
    const auto key_at = [&](int64_t key) {
      uint64_t from = kv_row;
      if (pages) {
        const uint64_t page = kv.shape[1], at = static_cast<uint64_t>(key);
        from = number(control, *pages, kv_row * row_pages + at / page);
        return &kv.values[(from * page + at % page) * kv_columns];
      }
      if (options.control && options.control->ancestry) {
        from = number(control, *options.control->ancestry, row * kv_len + key);
      }
      return &kv.values[(from * kv_len + key) * kv_columns];
    };
    for (uint64_t head = 0; head < heads; ++head) {
      const uint64_t kv_head = head / (heads / options.kv_heads);
      double factor = 1;
      if (options.control && options.control->head_mask) {
        factor = number(control, *options.control->head_mask, head);
      }
      const double sink =
          options.sinks ? number(control, *options.control->head_mask, heads + head) : 0;
      for (uint64_t i = 0; i < q_len; ++i) {
        const View view = view_of(control, options, kv_row, i, q_len, kv_len);
        const double* query =
            &q.values[(row * q_len + i) * q_columns + columns.q + head * options.head_size];
        const size_t map = ((row * heads + head) * q_len + i) * kv_len;
        const size_t result = (row * q_len + i) * heads * value_size + head * value_size;
        const Bounded center =
            center_of(control, options, view, row * q_len + i, head, kv_len, view.count);
        bool doubtful = false;  // rounding may decide which keys count
        Bounded maximum(-std::numeric_limits<double>::infinity());
        double least = std::numeric_limits<double>::infinity();
        keys.clear();
        for (int64_t key = view.first; key < view.end; ++key) {
          const double bias = bias_of(control, options, row, head, i, q_len, view, key, kv_len);
          if (bias < -1e30 || !allowed(control, options, view, key, kv_len)) continue;
          if (options.center_reach != 0) {
            const double beyond =
                std::fabs(static_cast<double>(key) - center.value) - options.center_reach;
            doubtful |= std::fabs(beyond) <= center.error;
            if (beyond > 0) continue;
          }
          const double* k = key_at(key) + columns.k + kv_head * options.head_size;
          double score = 0, size = 0, error = 0;
          IndependentErrors rounded;
          for (uint64_t d = 0; d < options.head_size; ++d) {
            const double query_error = q_error(query + d), key_error = kv_error(k + d);
            if (options.score == AttentionScore::kDot) {
              score += query[d] * k[d];
              size += std::fabs(query[d] * k[d]);
              error +=
                  query_error * (std::fabs(k[d]) + key_error) + std::fabs(query[d]) * key_error;
              if (!halves) continue;
              const double key_step = error_at(kv_halves, kv, k + d);
              rounded.add(error_at(q_halves, q, query + d) * (std::fabs(k[d]) + key_step) +
                          std::fabs(query[d]) * key_step);
              continue;
            }
            const double factor =
                options.control && options.control->score_vector
                    ? number(control, *options.control->score_vector, head * options.head_size + d)
                    : 0;
            const Bounded term =
                score_term(options, {query[d], query_error}, {k[d], key_error}, factor);
            score += term.value;
            size += std::fabs(term.value);
            error += term.error;
          }
          error += rounded.bound();
          // Kernels need not agree on results of NaN and infinities that a query does see.
          doubtful |= !std::isfinite(score);
          // A kernel may multiply the scale into the query or into the score.
          const bool exact = options.score == AttentionScore::kDot &&
                             sums_exactly(grain, size * std::max(scale_size, 1.0));
          const double summing = exact ? 0 : sum_error(options.head_size + 5.0, size);
          weights[key] = {score * scale_value, (error + summing) * scale_size};
          if (options.soft_cap != 0) {
            weights[key] =
                Bounded(options.soft_cap) * tanh(weights[key] / Bounded(options.soft_cap));
          }
          if (bias != 0) weights[key] = weights[key] + Bounded(bias);
          keys.push_back(key);
          maximum = max(maximum, weights[key]);
          least = std::min(least, weights[key].value);
        }
        if (keys.empty()) continue;  // the result is zeros
        const auto distrust = [&] {
          const double any = std::numeric_limits<double>::infinity();
          std::fill_n(expected.map.bounds.begin() + map, kv_len, any);
          std::fill_n(expected.result.bounds.begin() + result, value_size, any);
        };
        if (options.hard) {
          int64_t best = keys.front();
          for (int64_t key : keys) best = weights[key].value > weights[best].value ? key : best;
          for (int64_t key : keys) {
            // Equal scores come from equal keys, and are equal on the device too.
            const double gap = weights[best].value - weights[key].value;
            doubtful |= gap != 0 && gap <= weights[best].error + weights[key].error;
          }
          put(expected.map, map + best, 1);
          const double* v = key_at(best) + columns.v + kv_head * value_size;
          for (uint64_t d = 0; d < value_size; ++d) {
            put(expected.result, result + d, Bounded(v[d], kv_error(v + d)) * Bounded(factor));
          }
          if (doubtful) distrust();
          continue;
        }
        double sum = 0, error = 0;
        // The maximum that a device subtracts is equal in the weights and in their sum, so it
        // cancels.
        const Bounded peak(maximum.value);
        for (int64_t key : keys) {
          weights[key] = exp(weights[key] - peak);
          sum += weights[key].value;
          error += weights[key].error;
        }
        // Online softmax: earlier sums are rescaled with every block of keys.
        const double blocks = std::ceil(static_cast<double>(keys.size()) / 16) + 7,
                     count = static_cast<double>(keys.size());
        const double rescaled = blocks * 0x1p-23;
        const Bounded of_keys(sum, error + sum_error(count, sum) + rescaled * sum);
        const Bounded of_sink = options.sinks ? exp(Bounded(sink) - peak) : Bounded(0);
        const Bounded total = of_keys + of_sink;
        // In the result the rescaling factors are equal in numerator and denominator; in the map,
        // whose weights are computed at the end, they are not.
        const double factors = (4 * blocks + 2 * (maximum.value - least)) * 0x1p-23;
        const Bounded map_total(total.value, total.error + factors * sum);
        const Bounded inverse = Bounded(factor) / total;
        if (options.center != AttentionCenter::kNone && options.center_sigma != 0) {
          const double sigma = options.center_sigma;
          for (int64_t key : keys) {
            const Bounded distance = Bounded(static_cast<double>(key)) - center;
            const Bounded narrowness(1 / (2 * sigma * sigma), 0x1p-23 / (sigma * sigma));
            weights[key] = weights[key] * exp(Bounded(0) - distance * distance * narrowness);
          }
        }
        for (int64_t key : keys) put(expected.map, map + key, weights[key] / map_total);
        for (uint64_t d = 0; d < value_size; ++d) {
          double value = 0, size = 0, value_error = 0;
          IndependentErrors rounded;
          for (int64_t key : keys) {
            const double* v = key_at(key) + columns.v + kv_head * value_size + d;
            value += weights[key].value * *v;
            size += weights[key].value * std::fabs(*v);
            value_error += weights[key].error * std::fabs(*v) +
                           (weights[key].value + weights[key].error) * kv_error(v);
            if (halves) {
              rounded.add(half_weight_error(weights[key]) * std::fabs(*v) +
                          (weights[key].value + weights[key].error) * error_at(kv_halves, kv, v));
            }
          }
          value_error += rounded.bound();
          put(expected.result, result + d,
              Bounded(value, value_error + sum_error(count + 2, size) + rescaled * size) * inverse);
        }
        if (doubtful) distrust();
      }
    }
  }
  return expected;
}

}  // namespace mulciber::conformance
