#include "apps/attention/measures.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mulciber::apps {
namespace {

/// A row-major matrix in double precision, for products of many layers.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;

  Matrix(std::size_t row_count, std::size_t column_count)
      : rows(row_count), columns(column_count), values(row_count * column_count) {}
  double& at(std::size_t row, std::size_t column) { return values[row * columns + column]; }
  double at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

Matrix identity(std::size_t size) {
  Matrix result(size, size);
  for (std::size_t i = 0; i < size; ++i) result.at(i, i) = 1;
  return result;
}

Matrix mean_of_heads(const SentenceMaps::Kind& kind, std::size_t layer) {
  Matrix mean(kind.queries, kind.keys);
  const std::size_t size = kind.queries * kind.keys;
  for (std::size_t head = 0; head < kind.heads; ++head) {
    const float* map = kind.weights.data() + (layer * kind.heads + head) * size;
    for (std::size_t i = 0; i < size; ++i)
      mean.values[i] += double{map[i]} / static_cast<double>(kind.heads);
  }
  return mean;
}

/// Half of `kept` and half of `read` weighted by `weights`.
Matrix mix(const Matrix& kept, const Matrix& weights, const Matrix& read) {
  Matrix result(weights.rows, read.columns);
  // The end of the weights in each row of `read`: in causal attention about half of them are zero.
  std::vector<std::size_t> ends(read.rows, read.columns);
  for (std::size_t k = 0; k < read.rows; ++k) {
    while (ends[k] > 0 && read.at(k, ends[k] - 1) == 0) --ends[k];
  }
  for (std::size_t i = 0; i < weights.rows; ++i) {
    for (std::size_t k = 0; k < weights.columns; ++k) {
      const double half = 0.5 * weights.at(i, k);
      if (half == 0) continue;
      for (std::size_t j = 0; j < ends[k]; ++j) result.at(i, j) += half * read.at(k, j);
    }
    for (std::size_t j = 0; j < read.columns; ++j) result.at(i, j) += 0.5 * kept.at(i, j);
  }
  return result;
}

SentenceMaps::Kind rollout_kind(const SentenceMaps::Kind& of) {
  return {of.name + "_rollout", of.layers, 1, of.queries, of.keys, {}};
}

void append(SentenceMaps::Kind& kind, const Matrix& layer) {
  for (double value : layer.values) kind.weights.push_back(static_cast<float>(value));
}

}  // namespace

MapMeasures measure_map(std::span<const float> map, std::size_t keys) {
  MapMeasures sum;
  std::size_t rows = 0;
  for (std::size_t first = 0; first < map.size(); first += keys) {
    const auto row = map.subspan(first, keys);
    double total = 0;
    for (float weight : row) total += weight;
    if (!(total > 0) || !std::isfinite(total)) continue;
    ++rows;
    sum.largest += *std::ranges::max_element(row);
    for (float weight : row) {
      if (weight > 0) sum.entropy -= weight / total * std::log2(weight / total);
    }
  }
  if (rows == 0)
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  return {sum.entropy / static_cast<double>(rows), sum.largest / static_cast<double>(rows)};
}

std::vector<MapMeasures> measure_heads(const SentenceMaps::Kind& kind) {
  const std::size_t size = kind.queries * kind.keys;
  std::vector<MapMeasures> heads;
  for (std::size_t first = 0; first < kind.weights.size(); first += size) {
    heads.push_back(measure_map(std::span(kind.weights).subspan(first, size), kind.keys));
  }
  return heads;
}

std::vector<SentenceMaps::Kind> attention_rollout(const SentenceMaps& maps) {
  check_attention(maps);
  const auto find = [&](const char* name) -> const SentenceMaps::Kind* {
    const auto found = std::ranges::find(maps.kinds, name, &SentenceMaps::Kind::name);
    return found == maps.kinds.end() ? nullptr : &*found;
  };
  const SentenceMaps::Kind *encoder = find("encoder"), *decoder = find("decoder"),
                           *cross = find("cross");
  std::vector<SentenceMaps::Kind> result;

  Matrix source = identity(cross     ? cross->keys
                           : encoder ? encoder->keys
                                     : 0);  // source tokens of the encoder's output
  if (encoder) {
    SentenceMaps::Kind kind = rollout_kind(*encoder);
    for (std::size_t layer = 0; layer < encoder->layers; ++layer) {
      source = mix(source, mean_of_heads(*encoder, layer), source);
      append(kind, source);
    }
    result.push_back(std::move(kind));
  }
  if (!decoder) return result;

  // Row i belongs to the step that read target token i, so that position i holds this token at
  // first.
  Matrix from_target = identity(decoder->queries),
         from_source(decoder->queries, cross ? cross->keys : 0);
  const Matrix nothing(source.rows, decoder->keys);
  SentenceMaps::Kind target_kind = rollout_kind(*decoder);
  SentenceMaps::Kind source_kind = rollout_kind(cross ? *cross : *decoder);
  for (std::size_t layer = 0; layer < decoder->layers; ++layer) {
    const Matrix weights = mean_of_heads(*decoder, layer);
    from_target = mix(from_target, weights, from_target);
    if (cross) {
      from_source = mix(from_source, weights, from_source);
      const Matrix read = mean_of_heads(*cross, layer);
      from_source = mix(from_source, read, source);
      from_target = mix(from_target, read, nothing);
      append(source_kind, from_source);
    }
    append(target_kind, from_target);
  }
  result.push_back(std::move(target_kind));
  if (cross) result.push_back(std::move(source_kind));
  return result;
}

}  // namespace mulciber::apps
