#include "layers/attention_family.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "ops/copy.h"
#include "ops/elementwise.h"

namespace mulciber {
namespace {

/// Throws unless `part` covers all columns, because a projection reads all of them.
void check_whole(const ProgramBuilder& builder, const char* what, const HeadColumns& part) {
  if (part.first == 0) return;
  throw ShapeError(builder.path(),
                   fmt::format("{} is to be projected, and begins at column {}", what, part.first),
                   "give it a tensor of its own");
}

/// Gives q as many rows as the keys need: a learned query is one row for all.
HeadColumns rows_of_query(ProgramBuilder& builder, const HeadColumns& q, uint64_t rows) {
  if (q.tensor.shape.rank() != 3 || q.tensor.shape[0] == rows || q.tensor.shape[0] != 1) return q;
  const uint64_t columns = q.tensor.shape[1] * q.tensor.shape[2];
  const Tensor all =
      builder.activation({rows, q.tensor.shape[1], q.tensor.shape[2]}, q.tensor.type);
  copy_columns(builder, q.tensor.reshaped({1, columns}), all.reshaped({rows, columns}));
  return {all, q.first};
}

/// Compresses positions: `stride` neighbouring positions become one row of a product, a convolution
/// whose stride is its length.
HeadColumns compressed(ProgramBuilder& builder, const char* what, const HeadColumns& part,
                       const Linear& convolution, uint32_t stride) {
  check_whole(builder, what, part);
  const Shape& shape = part.tensor.shape;
  if (stride == 0 || shape[1] % stride != 0) {
    throw ShapeError(builder.path(),
                     fmt::format("{} has {} positions, which {} at a time do not divide", what,
                                 shape[1], stride),
                     "pad with zeros to a multiple of the compression's stride");
  }
  const auto scope = builder.scope(fmt::format("compress_{}", what));
  return {
      convolution(builder, part.tensor.reshaped({shape[0], shape[1] / stride, stride * shape[2]})),
      0};
}

/// First column of values beside keys: a multiple of four, for vector loads and pairs of halves.
uint32_t value_column(const AttentionOptions& options) {
  return (options.kv_heads * options.head_size + 3) / 4 * 4;
}

/// Copies keys, projected or not, and values into one tensor, side by side, for the kernels.
Tensor side_by_side(ProgramBuilder& builder, const AttentionFamily& attention, const HeadColumns& k,
                    const HeadColumns& v) {
  const uint32_t key_columns = attention.options.kv_heads * attention.options.head_size;
  const uint32_t value_columns = attention.options.kv_heads * attention.options.value_size;
  const Shape& shape = k.tensor.shape;
  const uint64_t columns = value_column(attention.options) + (value_columns + 3) / 4 * 4;
  const Tensor both = builder.activation({shape[0], shape[1], columns}, k.tensor.type);
  if (attention.key) {
    check_whole(builder, "k", k);
    const auto scope = builder.scope("key");
    matmul(builder, k.tensor, attention.key->weight, {.bias = attention.key->bias, .into = both});
  } else {
    copy_columns(builder, k.tensor, both, {.first_column = k.first, .columns = key_columns});
  }
  copy_columns(builder, v.tensor, both,
               {.first_column = v.first,
                .columns = value_columns,
                .into_column = value_column(attention.options)});
  return both;
}

}  // namespace

Tensor AttentionFamily::operator()(ProgramBuilder& builder, const HeadColumns& q,
                                   const HeadColumns& given_k, const HeadColumns& given_v,
                                   Tensor* map) const {
  AttentionOptions bound = options;
  if (given_k.tensor.shape.rank() != 3 || given_v.tensor.shape.rank() != 3) {
    throw ShapeError(builder.path(), "keys or values are not (rows, length, columns)",
                     "reshape them");
  }
  if (given_k.tensor.shape[1] == 0 && given_v.tensor.shape[1] == 0 && !map) {
    return attention_of_nothing(
        builder, rows_of_query(builder, q, given_k.tensor.shape[0] * options.rows_per_kv).tensor,
        options);
  }
  HeadColumns k = given_k, v = given_v;
  if (compression) {
    if (options.causal)
      throw ShapeError(builder.path(), "compressed keys have other positions than queries",
                       "give compressed_causal_mask() instead of causal");
    k = compressed(builder, "keys", given_k, compression->keys, compression->stride);
    v = compressed(builder, "values", given_v, compression->values, compression->stride);
  }
  const HeadColumns raw = rows_of_query(builder, q, k.tensor.shape[0] * options.rows_per_kv);
  HeadColumns queries = raw, keys = k, values = v;
  if (query) {
    check_whole(builder, "q", raw);
    const auto scope = builder.scope("query");
    queries = {(*query)(builder, raw.tensor), 0};
  }
  if (value) {
    check_whole(builder, "v", v);
    const auto scope = builder.scope("value");
    values = v = {(*value)(builder, v.tensor), 0};
  }
  if (key || !same_storage(k.tensor, v.tensor)) {
    const Tensor both = side_by_side(builder, *this, k, v);
    keys = {both, 0};
    values = {both, value_column(options)};
  }

  // All that kernels read beside queries and keys goes into one tensor of words.
  std::vector<Tensor> parts;
  ControlLayout layout;
  const auto append = [&](const Tensor& part) {
    parts.push_back(part);
    return layout.add<float>(part.shape.elements());
  };
  if (options.control) append(options.control->tensor);
  if ((vector || center_out) && !bound.control) bound.control = AttentionControl{};
  if (vector) bound.control->score_vector = append(*vector);
  if (center_out) {
    if (!center_hidden)
      throw ShapeError(builder.path(), "local-p has v_p and no W_p", "give center_hidden");
    check_whole(builder, "q", raw);
    const auto scope = builder.scope("center");
    Tensor logits =
        (*center_out)(builder, (*center_hidden)(builder, raw.tensor, Activation::kTanh));
    if (logits.type != DataType::kF32) logits = convert(builder, logits, DataType::kF32);
    bound.control->centers = append(logits);
  }
  if (vector || center_out)
    bound.control->tensor = parts.size() == 1 ? parts[0] : concatenate_words(builder, parts);
  if (bound.control) bound.control->tensor.type = DataType::kU32;

  if (map) *map = attention_map(builder, queries, keys, bound);
  return attention(builder, queries, keys, values, bound);
}

std::vector<float> block_diagonal(std::span<const float> weights, uint32_t heads, uint32_t out,
                                  uint32_t in) {
  std::vector<float> all(uint64_t{heads} * out * heads * in);
  for (uint64_t row = 0; row < uint64_t{heads} * out; ++row) {
    const auto from = weights.begin() + static_cast<std::ptrdiff_t>(row * in);
    std::copy_n(from, in,
                all.begin() + static_cast<std::ptrdiff_t>((row * heads + row / out) * in));
  }
  return all;
}

std::vector<float> convolution_rows(std::span<const float> weight, uint32_t out, uint32_t in,
                                    uint32_t taps) {
  std::vector<float> rows;
  for (uint32_t o = 0; o < out; ++o) {
    for (uint32_t tap = 0; tap < taps; ++tap) {
      for (uint32_t i = 0; i < in; ++i) rows.push_back(weight[(uint64_t{o} * in + i) * taps + tap]);
    }
  }
  return rows;
}

std::vector<float> compressed_causal_mask(uint32_t q_len, uint32_t keys, uint32_t stride,
                                          int32_t first_position) {
  std::vector<float> mask;
  for (uint32_t query = 0; query < q_len; ++query) {
    const int64_t position = int64_t{first_position} + query;
    for (uint32_t key = 0; key < keys / stride; ++key) {
      const bool past = (int64_t{key} + 1) * stride <= position + 1;
      mask.push_back(past ? 0.0f : -std::numeric_limits<float>::infinity());
    }
  }
  return mask;
}

uint32_t t5_bucket(int32_t distance, const T5Buckets& t5) {
  const uint32_t buckets = t5.bidirectional ? t5.buckets / 2 : t5.buckets;
  uint32_t first = 0;
  // In one-directional buckets, keys after the query share the bucket of distance 0.
  if (t5.bidirectional && distance > 0) first = buckets;
  const uint32_t size =
      static_cast<uint32_t>(t5.bidirectional ? std::abs(distance) : std::max(-distance, 0));
  const uint32_t exact = buckets / 2;
  if (size < exact) return first + size;
  // The buckets are defined by a logarithm in f32.
  const float log = std::log(static_cast<float>(size) / static_cast<float>(exact)) /
                    static_cast<float>(std::log(double(t5.max_distance) / exact)) *
                    static_cast<float>(buckets - exact);
  return first + std::min(exact + static_cast<uint32_t>(log), buckets - 1);
}

std::vector<float> t5_bias(std::span<const float> table, uint32_t heads, const T5Buckets& t5) {
  const int32_t span = static_cast<int32_t>(t5.max_distance);
  std::vector<float> bias;
  for (uint32_t head = 0; head < heads; ++head) {
    for (int32_t distance = -span; distance <= span; ++distance) {
      bias.push_back(table[uint64_t{t5_bucket(distance, t5)} * heads + head]);
    }
  }
  return bias;
}

std::vector<float> alibi_bias(std::span<const float> slopes, uint32_t span) {
  std::vector<float> bias;
  for (float slope : slopes) {
    for (uint64_t i = 0; i <= uint64_t{span} * 2; ++i) {
      bias.push_back(-slope * std::fabs(static_cast<float>(i) - static_cast<float>(span)));
    }
  }
  return bias;
}

std::vector<float> alibi_slopes(uint32_t heads) {
  const uint32_t whole = std::bit_floor(heads);
  std::vector<float> slopes;
  for (uint32_t head = 0; head < heads; ++head) {
    const double power =
        head < whole ? -8.0 * (head + 1) / whole : -4.0 * (2 * (head - whole) + 1) / whole;
    slopes.push_back(static_cast<float>(std::exp2(power)));
  }
  return slopes;
}

}  // namespace mulciber
