// Keys split over workgroups: group sizes around a tile, key counts around a split, masks that
// exclude splits.
#include "conformance/ops/attention_variants.h"

namespace mulciber::conformance {

std::vector<AttentionVariant> attention_split_variants() {
  std::vector<AttentionVariant> list;
  const auto add = [&](AttentionVariant v) { list.push_back(std::move(v)); };
  for (uint32_t group : {1, 2, 4, 5, 8}) {
    for (uint32_t size : {32, 64, 256}) {
      if (size == 256 && group > 4) continue;
      add({.rows = 2,
           .kv_len = 1100,
           .heads = 2 * group,
           .kv_heads = 2,
           .head_size = size,
           .suffix = group == 5 || group == 1 ? "shares_sinks" : "shares",
           .causal = true,
           .key_counts = {1099, group < 4 ? 255u : 511u},
           .key_count_extra = 1,
           .head_mask = group == 5,
           .sinks = group == 5 || group == 1,
           .poison = true,
           .split_counters = true});
    }
  }
  add({.rows = 3,
       .kv_len = 513,
       .heads = 3,
       .kv_heads = 1,
       .head_size = 40,
       .value_size = 24,
       .suffix = "shares_counts",
       .key_counts = {0, 1, 513},
       .poison = true,
       .split_counters = true});
  add({.rows = 1,
       .kv_len = 2048,
       .heads = 2,
       .kv_heads = 1,
       .head_size = 64,
       .suffix = "shares_window",
       .causal = true,
       .key_counts = {1900},
       .key_count_extra = 1,
       .window = 700,
       .split_counters = true});
  add({.rows = 1,
       .kv_len = 700,
       .heads = 4,
       .kv_heads = 2,
       .head_size = 32,
       .suffix = "shares_mask",
       .soft_cap = 3,
       .bias = AttentionBias::kMaskPerHead,
       .split_counters = true});
  add({.rows = 2,
       .kv_len = 600,
       .heads = 2,
       .kv_heads = 2,
       .head_size = 32,
       .suffix = "shares_ancestry",
       .ancestry = true,
       .split_counters = true});
  add({.rows = 2,
       .kv_len = 1120,
       .heads = 4,
       .kv_heads = 2,
       .head_size = 64,
       .suffix = "shares_pages",
       .causal = true,
       .key_counts = {1099, 255},
       .key_count_extra = 1,
       .poison = true,
       .split_counters = true,
       .page = 32});
  return list;
}

}  // namespace mulciber::conformance
