#include "ops/attention_problem.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "mulciber/error.h"
#include "runtime/op.h"
#include "shaders/attention.h"

namespace mulciber {
namespace {

uint64_t divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

[[noreturn]] void refuse_attention(const ProgramBuilder& builder, std::string problem,
                                   std::string remedy) {
  throw ShapeError(builder.path(), std::move(problem), std::move(remedy));
}

/// Number of floats in the bias.
uint64_t bias_words(const AttentionOptions& options, const AttentionSizes& sizes) {
  const uint32_t kind = static_cast<uint32_t>(options.bias);
  if (kind == BIAS_NONE) return 0;
  if (kind == BIAS_RELATIVE) return options.heads * (2 * uint64_t{options.bias_span} + 1);
  const uint64_t lines = ((kind & 1) != 0 ? sizes.rows : 1) * ((kind & 2) != 0 ? options.heads : 1);
  return lines * sizes.q_len * sizes.kv_len;
}

void check_control(const ProgramBuilder& builder, const AttentionControl& control,
                   const AttentionOptions& options, const AttentionSizes& sizes) {
  if (control.tensor.type != DataType::kU32) refuse_attention(builder, "control is not u32", "");
  const auto check_room = [&](const char* what, const auto& array, uint64_t needed) {
    if (!array || fits(*array, needed, control.tensor)) return;
    refuse_attention(
        builder,
        fmt::format("{}: {} at word {} where {} are needed, control has {} words", what,
                    array->count, array->word, needed, control.tensor.shape.elements()),
        "make room for them in control");
  };
  const bool shared_count = control.key_counts && control.key_counts->count == 1;
  check_room("key counts", control.key_counts, shared_count ? 1 : sizes.kv_rows);
  check_room("ancestry", control.ancestry, sizes.rows * sizes.kv_len);
  check_room("the head mask", control.head_mask, uint64_t{options.heads} * (options.sinks ? 2 : 1));
  check_room("the bias", control.bias, bias_words(options, sizes));
  check_room("the pattern", control.pattern, options.pattern.query_blocks + uint64_t{1});
  check_room("global tokens", control.globals, divide_up(sizes.kv_len, 32));
  check_room("the score vector", control.score_vector, uint64_t{options.heads} * options.head_size);
  check_room("the centers", control.centers, sizes.rows * sizes.q_len * options.heads);
  check_room("split counters", control.split_counters, sizes.kv_rows * options.heads);
  if (control.ancestry && options.rows_per_kv != 1) {
    refuse_attention(builder,
                     fmt::format("ancestry with {} rows per row of keys", options.rows_per_kv),
                     "with ancestry every row has keys of its own");
  }
  if (control.ancestry && control.pages)
    refuse_attention(builder, "ancestry of keys that stand in pages", "leave one of them out");
}

}  // namespace

uint64_t cache_length(const ProgramBuilder& builder, const Tensor& cache, uint64_t rows,
                      const Tensor& control, const std::optional<ControlArray<uint32_t>>& pages) {
  if (!pages) return cache.shape[1];
  if (cache.shape[1] == 0 || pages->count == 0 || pages->count % rows != 0 ||
      !fits(*pages, pages->count, control)) {
    refuse_attention(
        builder,
        fmt::format("{} pages of {} positions for {} rows", pages->count, cache.shape[1], rows),
        "give as many pages for each row, in a u32 tensor that holds their numbers");
  }
  return pages->count / rows * cache.shape[1];
}

AttentionSizes sizes_of(const ProgramBuilder& builder, const Tensor& q, const Tensor& kv,
                        const AttentionOptions& options) {
  if (!options.control || !options.control->pages)
    return {q.shape[0], q.shape[1], kv.shape[0], kv.shape[1]};
  const uint64_t rows = q.shape[0] / std::max(options.rows_per_kv, 1u);
  return {q.shape[0], q.shape[1], rows,
          cache_length(builder, kv, std::max<uint64_t>(rows, 1), options.control->tensor,
                       options.control->pages)};
}

void check_head_columns(const ProgramBuilder& builder, const char* what, const HeadColumns& part,
                        uint64_t heads, uint64_t head_size) {
  if (part.tensor.shape.rank() != 3) {
    refuse_attention(builder, fmt::format("{} has shape {}", what, part.tensor.shape.to_string()),
                     "it must be (rows, length, columns)");
  }
  if (part.first + heads * head_size > part.tensor.shape.columns()) {
    refuse_attention(builder,
                     fmt::format("{} heads of {} from column {} pass the {} columns of {}", heads,
                                 head_size, part.first, part.tensor.shape.columns(), what),
                     "make the tensor wider or the heads smaller");
  }
}

AttentionSizes check_attention(const ProgramBuilder& builder, const HeadColumns& q,
                               const HeadColumns& k, const AttentionOptions& options,
                               uint32_t most) {
  if (options.heads == 0 || options.kv_heads == 0 || options.heads % options.kv_heads != 0) {
    refuse_attention(
        builder, fmt::format("{} query heads over {} key heads", options.heads, options.kv_heads),
        "key heads must divide query heads");
  }
  if (options.head_size == 0 || options.head_size > most) {
    refuse_attention(builder, fmt::format("head size {}", options.head_size),
                     fmt::format("it must be 1 to {}", most));
  }
  check_head_columns(builder, "q", q, options.heads, options.head_size);
  check_head_columns(builder, "k", k, options.kv_heads, options.head_size);
  const AttentionSizes sizes = sizes_of(builder, q.tensor, k.tensor, options);
  if (sizes.rows == 0 || sizes.q_len == 0) {
    refuse_attention(
        builder,
        fmt::format("q is {} and k is {}", q.tensor.shape.to_string(), k.tensor.shape.to_string()),
        "there must be a query");
  }
  if (options.rows_per_kv == 0 || sizes.rows != sizes.kv_rows * options.rows_per_kv) {
    refuse_attention(builder,
                     fmt::format("q has {} rows and k has {}, with {} rows of q per row of k",
                                 sizes.rows, sizes.kv_rows, options.rows_per_kv),
                     "the product must agree");
  }
  if (options.query_offset.value_or(0) > static_cast<int32_t>(kMaxWindow) ||
      options.query_offset.value_or(0) < -static_cast<int32_t>(kMaxWindow)) {
    refuse_attention(builder, fmt::format("queries stand at {}", *options.query_offset),
                     "give a position below 2^29");
  }
  if (!(options.soft_cap >= 0)) {
    refuse_attention(builder, fmt::format("scores are capped at {}", options.soft_cap),
                     "give a positive cap, or 0 for none");
  }
  const auto need = [&](bool asked, const char* what, auto AttentionControl::*array) {
    if (!asked || (options.control && (*options.control).*array)) return;
    refuse_attention(builder, fmt::format("{} is asked for and control holds none", what),
                     "say where it stands in control");
  };
  need(options.bias != AttentionBias::kNone, "a bias", &AttentionControl::bias);
  need(options.sinks, "a sink of each head", &AttentionControl::head_mask);
  need(options.pattern.block_queries != 0, "a pattern", &AttentionControl::pattern);
  need(options.global_tokens, "a set of global tokens", &AttentionControl::globals);
  need(options.center == AttentionCenter::kPredicted, "a predicted center",
       &AttentionControl::centers);
  need(options.score == AttentionScore::kAdditive || options.score == AttentionScore::kLeaky,
       "an additive score", &AttentionControl::score_vector);
  if (options.pattern.block_queries != 0 &&
      (options.pattern.block_keys == 0 || options.pattern.query_blocks == 0)) {
    refuse_attention(builder, "a pattern has blocks of no keys or no blocks",
                     "give all of KeyPattern");
  }
  if (options.sinks && (options.hard || options.center != AttentionCenter::kNone)) {
    refuse_attention(builder, "hard or local attention has sinks", "leave the sinks out");
  }
  if (options.hard && options.center != AttentionCenter::kNone) {
    refuse_attention(builder, "hard attention has a center",
                     "a single key has no neighbours to fall off to");
  }
  if (!(options.center_sigma >= 0 && options.center_reach >= 0)) {
    refuse_attention(builder, "local attention has a negative width",
                     "give positive ones, or 0 for none");
  }
  if (options.control) check_control(builder, *options.control, options, sizes);
  return sizes;
}

bool whole_tiles(const AttentionOptions& options, uint64_t tile) {
  const uint64_t block = options.pattern.block_queries;
  if (block == 0) return true;
  const uint64_t pack = options.heads / options.kv_heads;
  return block * pack % tile == 0 && options.rows_per_kv == 1 && options.query_offset &&
         *options.query_offset % static_cast<int64_t>(block) == 0;
}

ShapeFacts attention_facts(std::initializer_list<uint64_t> extents, const AttentionOptions& options,
                           const AttentionSizes& sizes) {
  uint64_t divisor = 0;
  for (uint64_t extent : extents) divisor = std::gcd(divisor, extent);
  ShapeFacts facts = kAnyShape;
  if (divisor % 4 == 0) facts |= kDepthMultipleOf4;
  if (divisor % 8 == 0) facts |= kDepthMultipleOf8;
  if (divisor % 16 == 0) facts |= kDepthMultipleOf16;
  if (divisor % 32 == 0) facts |= kDepthMultipleOf32;
  if (divisor % 64 == 0) facts |= kDepthMultipleOf64;
  const uint32_t widest = std::max(options.head_size, options.value_size);
  if (widest <= 64) facts |= kHeadSizeAtMost64;
  if (widest <= 128) facts |= kHeadSizeAtMost128;
  if (options.head_size <= 640 && options.value_size <= 512) facts |= kHeadSizeAtMost640;
  // Rows that share keys, and the heads of a group, count as more queries of one row.
  const uint64_t positions = sizes.q_len * options.rows_per_kv;
  const uint64_t queries = positions * (options.heads / options.kv_heads);
  if (positions >= 8) facts |= kManyPositions;
  if (queries == 1) facts |= kOneQuery;
  if (queries >= 8) facts |= kManyQueries;
  if (queries >= 32) facts |= kQueriesAtLeast32;
  if (!options.control || !options.control->ancestry) facts |= kNoAncestry;
  if (options.pattern.block_queries == 0 && !options.global_tokens) facts |= kContiguousKeys;
  if (options.score == AttentionScore::kDot && !options.hard &&
      options.center == AttentionCenter::kNone) {
    facts |= kScaledProducts;
  }
  const uint64_t key_heads = sizes.kv_rows * options.kv_heads;
  if ((facts & kScaledProducts) && (facts & kContiguousKeys) && positions == 1 && key_heads <= 64 &&
      sizes.kv_len >= 2 * MIN_KEYS_PER_SPLIT && options.control &&
      options.control->split_counters) {
    facts |= kSplitKeys;
  }
  if (key_heads <= 4) facts |= kFewKeyHeads;
  if (whole_tiles(options, 16)) facts |= kWholeTiles;
  return facts;
}

KeptKeys kept_keys(const AttentionOptions& options, const AttentionSizes& sizes) {
  const int64_t kv_len = static_cast<int64_t>(sizes.kv_len),
                q_len = static_cast<int64_t>(sizes.q_len);
  const int64_t offset = options.query_offset.value_or(static_cast<int32_t>(kv_len - q_len));
  KeptKeys kept;
  int64_t reached = 0;  // end of the keys that are counted already
  for (int64_t i = 0; i < q_len; ++i) {
    int64_t first = 0, end = kv_len;
    if (options.window != 0) {
      first = std::max<int64_t>(offset + i - options.window + 1, 0);
      end = std::min<int64_t>(end, offset + i + options.window);
    }
    if (options.causal) end = std::min<int64_t>(end, offset + i + 1);
    if (end <= first) continue;
    const auto reach = static_cast<int64_t>(2 * options.center_reach +
                                            1);  // a predicted center reaches no more keys
    kept.pairs += options.center_reach != 0 ? std::min(end - first, reach) : end - first;
    kept.keys += std::max<int64_t>(end - std::max(first, reached), 0);
    reached = std::max(reached, end);
  }
  return kept;
}

uint64_t score_operations(AttentionScore score) {
  constexpr uint64_t kTanh = 19;
  switch (score) {
    case AttentionScore::kDot: return 2;
    case AttentionScore::kAdditive: return 3 + kTanh;
    case AttentionScore::kLeaky:
      return 5;  // a sum, its multiple, a choice of these, the product with v, its sum
    case AttentionScore::kDistance: return 3;
  }
  return 0;
}

}  // namespace mulciber
