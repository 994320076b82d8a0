#include "models/attention/attention_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layers/attention_family.h"
#include "layers/key_pattern.h"

namespace mulciber {
namespace {

[[noreturn]] void refuse(std::string problem, std::string remedy) {
  throw ShapeError("attention", std::move(problem), std::move(remedy));
}

/// Columns of queries, keys or values in one head, after compression and projection.
uint32_t columns_of_head(const char* what, const FloatArray& array, const FloatArray* convolution,
                         const std::optional<Projection>& projection, uint32_t heads) {
  uint64_t columns = convolution ? convolution->shape[0] : array.shape[2];
  if (projection) {
    const std::vector<uint64_t>& weight = projection->weight.shape;
    columns = weight.size() == 3 ? weight[0] * weight[1] : weight[0];
  }
  if (columns == 0 || columns % heads != 0)
    refuse(fmt::format("{} have {} columns for {} heads", what, columns, heads),
           "give every head as many");
  return static_cast<uint32_t>(columns / heads);
}

/// Computes the options of one call.
class Planner {
 public:
  Planner(const AttentionDescription& description, const AttentionInputs& inputs)
      : d_(description), inputs_(inputs) {}
  AttentionPlan plan();

 private:
  void plan_batch();
  void plan_sizes();
  void plan_score();
  void plan_keys();
  void plan_pattern();
  FloatArray compressed_mask() const;
  void plan_mask(const FloatArray& mask);
  void plan_bias();
  uint32_t alibi_span() const;
  uint32_t stride() const {
    return d_.compression ? static_cast<uint32_t>(d_.compression->keys.shape[2]) : 1;
  }

  const AttentionDescription& d_;
  const AttentionInputs& inputs_;
  AttentionPlan plan_ = {};
  AttentionOptions& options_ = plan_.options;
};

AttentionPlan Planner::plan() {
  check_array("queries", inputs_.queries, 3);
  check_array("keys", inputs_.keys, 3);
  check_array("values", inputs_.values, 3);
  options_.control = AttentionControl{};
  plan_batch();
  plan_sizes();
  plan_score();
  plan_keys();
  plan_pattern();
  plan_mask(d_.causal && d_.compression ? compressed_mask() : inputs_.mask);
  plan_bias();
  if (!d_.head_mask.empty()) options_.control->head_mask = plan_.words.append(d_.head_mask);
  if (plan_.words.size() == 0) options_.control.reset();
  return std::move(plan_);
}

void Planner::plan_batch() {
  const std::vector<uint64_t>&q = inputs_.queries.shape, &k = inputs_.keys.shape,
        &v = inputs_.values.shape;
  plan_.q_batch = q[0];
  plan_.kv_batch = k[0];
  plan_.q_len = q[1];
  plan_.kv_len = k[1];
  plan_.score_columns = k[1] / stride();
  if (k[0] != v[0] || k[1] != v[1])
    refuse(fmt::format("{} times {} keys, {} times {} values", k[0], k[1], v[0], v[1]),
           "give a value for each key");
  if (q[0] == 0 || q[1] == 0 || k[0] == 0 || (q[0] != 1 && q[0] % k[0] != 0))
    refuse(fmt::format("queries have {} batch entries of {}, keys {}", q[0], q[1], k[0]),
           "give as many, a multiple, or one that all keys take");
  options_.rows_per_kv = q[0] == 1 ? 1 : static_cast<uint32_t>(q[0] / k[0]);
}

void Planner::plan_sizes() {
  const MemoryCompression* compression = d_.compression ? &*d_.compression : nullptr;
  options_.heads = d_.heads;
  options_.kv_heads = d_.kv_heads;
  options_.head_size = columns_of_head("queries", inputs_.queries, nullptr, d_.query, d_.heads);
  options_.value_size =
      columns_of_head("values", inputs_.values, compression ? &compression->values : nullptr,
                      d_.value, d_.kv_heads);
  const uint32_t key_size = columns_of_head(
      "keys", inputs_.keys, compression ? &compression->keys : nullptr, d_.key, d_.kv_heads);
  if (key_size != options_.head_size)
    refuse(fmt::format("a query has {} columns in a head, a key {}", options_.head_size, key_size),
           "project one of them");
}

void Planner::plan_score() {
  options_.score = d_.score;
  options_.leaky_slope = d_.leaky_slope;
  options_.soft_cap = d_.soft_cap;
  options_.hard = d_.hard;
  const float usual = d_.score == AttentionScore::kDot
                          ? 1 / std::sqrt(static_cast<float>(options_.head_size))
                          : 1.0f;
  options_.scale = d_.scale.value_or(usual);
  const bool takes_vector =
      d_.score == AttentionScore::kAdditive || d_.score == AttentionScore::kLeaky;
  const uint64_t wanted = takes_vector ? uint64_t{d_.heads} * options_.head_size : 0;
  if (d_.score_vector.size() != wanted)
    refuse(fmt::format("score_vector has {} numbers, and {} are expected", d_.score_vector.size(),
                       wanted),
           "give additive and leaky scores (heads, head_size), and others none");
  if (takes_vector) options_.control->score_vector = plan_.words.append(d_.score_vector);
}

void Planner::plan_keys() {
  options_.query_offset = inputs_.query_offset;
  options_.causal = d_.causal && !d_.compression;  // compressed keys use a mask instead
  options_.window = d_.window;
  if (!inputs_.key_counts.empty()) {
    std::vector<uint32_t> counts = inputs_.key_counts;
    if (counts.size() != plan_.kv_batch)
      refuse(fmt::format("{} key_counts for {} batch entries", counts.size(), plan_.kv_batch),
             "give a count for each");
    for (uint32_t& count : counts) count /= stride();
    options_.control->key_counts = plan_.words.append(counts);
  }
  if (!d_.local) return;
  options_.center_sigma = d_.local->sigma;
  if (d_.local->hidden) {
    options_.center = AttentionCenter::kPredicted;
    options_.center_reach = static_cast<float>(d_.local->reach);
    return;
  }
  if (d_.local->sigma > 0) options_.center = AttentionCenter::kPosition;
  if (d_.local->reach > 0)
    options_.window = std::min(d_.window > 0 ? d_.window : UINT32_MAX, d_.local->reach + 1);
}

void Planner::plan_pattern() {
  BlockSparseKeys list;
  const auto length = static_cast<uint32_t>(plan_.kv_len);
  if (const auto* longformer = std::get_if<Longformer>(&d_.pattern))
    list = longformer_keys(length, options_.window, longformer->global_tokens, longformer->block);
  else if (const auto* bigbird = std::get_if<BigBird>(&d_.pattern))
    list = bigbird_keys(length, *bigbird);
  else if (const auto* listed = std::get_if<ListedKeys>(&d_.pattern))
    list = block_sparse_keys(listed->block_queries, listed->block_keys, listed->lists);
  else
    return;
  options_.pattern = list.pattern;
  options_.control->pattern = plan_.words.append(list.words);
  options_.global_tokens = !list.globals.empty();
  if (options_.global_tokens) options_.control->globals = plan_.words.append(list.globals);
}

/// The given mask, plus a causal mask of compressed keys: a key with a position after the query is
/// masked.
FloatArray Planner::compressed_mask() const {
  if (!inputs_.key_counts.empty() && !inputs_.query_offset)
    refuse("compressed keys are counted, and where the queries stand is not said",
           "give query_offset");
  const auto q_len = static_cast<uint32_t>(plan_.q_len);
  const auto kv_len = static_cast<uint32_t>(plan_.kv_len);
  const std::vector<float> past = compressed_causal_mask(
      q_len, kv_len, stride(), inputs_.query_offset.value_or(static_cast<int32_t>(kv_len - q_len)));
  FloatArray mask = inputs_.mask;
  if (mask.values.empty() || past.empty()) return {{1, 1, plan_.q_len, plan_.score_columns}, past};
  for (size_t i = 0; i < mask.values.size(); ++i) mask.values[i] += past[i % past.size()];
  return mask;
}

void Planner::plan_mask(const FloatArray& mask) {
  if (mask.values.empty()) return;
  check_array("mask", mask, 4);
  const std::vector<uint64_t>& shape = mask.shape;
  if (d_.bias.index() != 0) refuse("a mask along with a bias", "add the bias to the mask");
  if ((shape[0] != 1 && shape[0] != plan_.batch()) || (shape[1] != 1 && shape[1] != d_.heads) ||
      shape[2] != plan_.q_len || shape[3] != plan_.score_columns)
    refuse(fmt::format("mask has the shape ({})", fmt::join(shape, ", ")),
           fmt::format("give (1 or {}, 1 or {}, {}, {})", plan_.batch(), d_.heads, plan_.q_len,
                       plan_.score_columns));
  const bool per_row = shape[0] > 1, per_head = shape[1] > 1;
  options_.bias = per_row && per_head ? AttentionBias::kMaskPerRowAndHead
                  : per_row           ? AttentionBias::kMaskPerRow
                  : per_head          ? AttentionBias::kMaskPerHead
                                      : AttentionBias::kMask;
  options_.control->bias = plan_.words.append(mask.values);
}

void Planner::plan_bias() {
  if (d_.bias.index() == 0) return;
  options_.bias = AttentionBias::kRelative;
  if (const auto* t5 = std::get_if<T5Bias>(&d_.bias)) {
    check_array("the table of the bias", t5->table, 2);
    const auto buckets = static_cast<uint32_t>(t5->table.shape[0]);
    if (t5->table.shape[1] != d_.heads || buckets < 4 || t5->max_distance <= buckets / 2)
      refuse(fmt::format("the table of the bias has the shape ({}), for distances up to {}",
                         fmt::join(t5->table.shape, ", "), t5->max_distance),
             fmt::format("give (buckets, {}): 4 buckets or more, fewer than twice the distances",
                         d_.heads));
    options_.bias_span = t5->max_distance;
    options_.control->bias = plan_.words.append(
        t5_bias(t5->table.values, d_.heads, {buckets, t5->max_distance, t5->bidirectional}));
    return;
  }
  const std::vector<float>& slopes = std::get<AlibiBias>(d_.bias).slopes;
  if (!slopes.empty() && slopes.size() != d_.heads)
    refuse(fmt::format("{} slopes for {} heads", slopes.size(), d_.heads), "give one for each");
  options_.bias_span = alibi_span();
  options_.control->bias = plan_.words.append(
      alibi_bias(slopes.empty() ? alibi_slopes(d_.heads) : slopes, options_.bias_span));
}

/// A distance that no query and key exceed.
uint32_t Planner::alibi_span() const {
  const auto keys = static_cast<int64_t>(plan_.kv_len), queries = static_cast<int64_t>(plan_.q_len);
  int64_t least = keys, most = keys;  // valid keys of a batch entry
  if (!inputs_.key_counts.empty()) {
    const auto counts = std::minmax_element(inputs_.key_counts.begin(), inputs_.key_counts.end());
    least = *counts.first;
    most = *counts.second;
  }
  const int64_t first = inputs_.query_offset.value_or(least - queries);
  const int64_t last = inputs_.query_offset ? first + queries : most;
  const int64_t span = std::max({std::abs(keys - first), std::abs(first), std::abs(last)});
  constexpr int64_t kMost = 1 << 20;
  if (span > kMost)
    refuse(fmt::format("a query stands {} positions away from a key, {} at most", span, kMost),
           "give a query_offset nearer to the keys, or the bias as a mask");
  return static_cast<uint32_t>(span);
}

}  // namespace

void check_array(const std::string& what, const FloatArray& array, size_t rank) {
  uint64_t elements = 1;
  bool sound = array.shape.size() == rank;
  for (uint64_t extent : array.shape) {
    sound = sound && (elements == 0 || extent <= UINT32_MAX / elements);
    elements *= extent;
  }
  if (sound && elements == array.values.size()) return;
  refuse(fmt::format("{} has {} values, and the shape ({})", what, array.values.size(),
                     fmt::join(array.shape, ", ")),
         fmt::format("give {} extents, and a value for each element", rank));
}

AttentionPlan plan_attention(const AttentionDescription& description,
                             const AttentionInputs& inputs) {
  return Planner(description, inputs).plan();
}

}  // namespace mulciber
