// Many queries at once, with the head sizes of models: several tiles of queries and blocks of keys,
// the last of them partial, with every mask and bias.
#include "conformance/ops/attention_variants.h"

namespace mulciber::conformance {

std::vector<AttentionVariant> attention_prefill_variants() {
  std::vector<AttentionVariant> list;
  const auto add = [&](AttentionVariant v) {
    v.suffix = v.suffix.empty() ? "prefill" : "prefill_" + v.suffix;
    list.push_back(std::move(v));
  };
  for (uint32_t size : {64, 80, 96, 128, 256}) {
    add({.rows = 1,
         .q_len = 67,
         .kv_len = 83,
         .heads = 2,
         .kv_heads = 1,
         .head_size = size,
         .causal = true,
         .query_offset = 16});
  }
  add({.rows = 2, .q_len = 34, .kv_len = 100, .heads = 1, .head_size = 128, .value_size = 64});
  add({.rows = 1, .q_len = 70, .kv_len = 3, .heads = 1, .head_size = 16, .value_size = 48});
  add({.rows = 3,
       .q_len = 21,
       .kv_len = 66,
       .heads = 4,
       .kv_heads = 2,
       .head_size = 64,
       .suffix = "counts_sinks",
       .causal = true,
       .key_counts = {0, 12, 45},
       .key_count_extra = 21,
       .head_mask = true,
       .sinks = true,
       .poison = true});
  add({.rows = 4,
       .q_len = 17,
       .kv_len = 40,
       .heads = 2,
       .head_size = 32,
       .suffix = "beams",
       .rows_per_kv = 2,
       .key_counts = {0, 33},
       .poison = true});
  for (uint32_t size : {80, 256}) {
    add({.rows = 1,
         .q_len = 50,
         .kv_len = 120,
         .heads = 2,
         .kv_heads = 1,
         .head_size = size,
         .suffix = "window_cap",
         .causal = true,
         .deviation = 2,
         .window = 37,
         .soft_cap = 5});
  }
  add({.rows = 2,
       .q_len = 33,
       .kv_len = 49,
       .heads = 3,
       .head_size = 48,
       .suffix = "relative",
       .query_offset = 4,
       .bias = AttentionBias::kRelative,
       .bias_span = 8});
  add({.rows = 2,
       .q_len = 32,
       .kv_len = 47,
       .heads = 4,
       .kv_heads = 2,
       .head_size = 64,
       .suffix = "mask",
       .bias = AttentionBias::kMaskPerRowAndHead});
  add({.rows = 1,
       .q_len = 36,
       .kv_len = 90,
       .heads = 1,
       .head_size = 32,
       .suffix = "large",
       .deviation = 100,
       .scale = 10});
  // Only some queries of a tile see these keys.
  AttentionVariant nan{.rows = 1,
                       .q_len = 67,
                       .kv_len = 83,
                       .heads = 2,
                       .kv_heads = 1,
                       .head_size = 64,
                       .suffix = "nan_causal",
                       .causal = true,
                       .poison = true,
                       .poisoned = {50, 61, 82},
                       .query_offset = 16};
  add(nan);
  nan.suffix = "nan_window", nan.window = 15;
  add(nan);
  nan = {.rows = 2,
         .q_len = 33,
         .kv_len = 40,
         .heads = 1,
         .head_size = 64,
         .suffix = "nan_mask",
         .poison = true,
         .poisoned = {29},
         .bias = AttentionBias::kMaskPerRow};
  add(nan);
  // Keys split over workgroups: into equal parts, and into some that have no key, or none that a
  // row sees.
  add({.rows = 1,
       .q_len = 17,
       .kv_len = 150,
       .heads = 4,
       .kv_heads = 2,
       .head_size = 64,
       .suffix = "parts_sinks",
       .causal = true,
       .head_mask = true,
       .sinks = true,
       .query_offset = 133,
       .key_parts = 3});
  add({.rows = 2,
       .q_len = 66,
       .kv_len = 70,
       .heads = 1,
       .head_size = 48,
       .suffix = "parts_window",
       .causal = true,
       .key_counts = {2, 40},
       .key_count_extra = 30,
       .poison = true,
       .window = 21,
       .key_parts = 5});
  add({.rows = 1,
       .q_len = 35,
       .kv_len = 97,
       .heads = 2,
       .kv_heads = 1,
       .head_size = 128,
       .value_size = 64,
       .suffix = "parts_mask",
       .bias = AttentionBias::kMask,
       .key_parts = 2});
  return list;
}

}  // namespace mulciber::conformance
