// Lists of problems for attention and its map; attention_cases.cpp makes cases of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/ops/page_table.h"
#include "layers/key_pattern.h"
#include "ops/attention.h"

namespace mulciber::conformance {

/// A problem of the suite; members left at their defaults are absent.
struct AttentionVariant {
  uint64_t rows = 1, q_len = 1, kv_len = 1;
  uint32_t heads = 1, kv_heads = 0;        // 0: equal to heads
  uint32_t head_size = 1, value_size = 0;  // 0: equal to head_size
  std::string suffix;
  bool causal = false;
  uint32_t rows_per_kv = 1;
  std::vector<uint32_t> key_counts;  // per row of keys, or one for all
  uint32_t key_count_extra = 0;
  bool ancestry = false;
  bool head_mask = false;
  bool sinks = false;                   // with a head mask
  bool poison = false;                  // NaN and infinities where no query looks
  std::vector<uint32_t> poisoned = {};  // and in these keys: queries that see them are not checked
  double deviation = 1;                 // deviation of q's values
  uint32_t spare = 0;  // columns between and after the parts, so that strides and offsets are odd
  float scale = 0;     // 0: head_size^-0.5
  std::optional<int32_t> query_offset;
  uint32_t window = 0;
  float soft_cap = 0;
  AttentionBias bias = AttentionBias::kNone;
  uint32_t bias_span = 0;
  AttentionScore score = AttentionScore::kDot;
  bool hard = false;
  AttentionCenter center = AttentionCenter::kNone;
  float center_sigma = 0, center_reach = 0;
  BlockSparseKeys keys;         // a pattern, global tokens
  bool sparse = false;          // so few keys that nearly all is zero
  bool split_counters = false;  // workgroups may split the keys of a row
  /// Key parts of a tile of queries, for rows on matrix units; 0: default.
  uint32_t key_parts = 0;
  uint32_t page = 0;  // positions of a page of keys and values; 0: contiguous rows

  PageTable pages() const { return {page, rows / rows_per_kv, kv_len}; }
};

/// Scaled products over masks, sizes, windows, caps and biases.
std::vector<AttentionVariant> attention_variants();
/// Attention problems whose keys are split over workgroups, for flash decoding.
std::vector<AttentionVariant> attention_split_variants();
/// Attention problems with many queries, for prefill.
std::vector<AttentionVariant> attention_prefill_variants();
/// Other scores, hard and local attention, key patterns.
std::vector<AttentionVariant> attention_family_variants();
/// One key for all heads, whose last columns are the value.
std::vector<AttentionVariant> latent_attention_variants();
/// Every kind of docs/reference/attention.md at the size of one dense problem, for the bench;
/// `suffix` has its name. Windows are a sixteenth of the keys.
std::vector<AttentionVariant> attention_kinds(const AttentionVariant& dense);

}  // namespace mulciber::conformance
