// One key for all heads: sizes around the tiles of heads, columns and keys, decode and prefill, key
// counts, pages, keys split over workgroups.
#include "conformance/ops/attention_variants.h"

namespace mulciber::conformance {

std::vector<AttentionVariant> latent_attention_variants() {
  std::vector<AttentionVariant> list;
  const auto add = [&](AttentionVariant v) {
    v.kv_heads = 1;
    list.push_back(std::move(v));
  };
  // Sizes that vectors do not divide, then sizes for few and for many lanes.
  for (const auto& [size, value] : std::vector<std::pair<uint32_t, uint32_t>>{
           {3, 2}, {28, 20}, {64, 32}, {136, 128}, {320, 256}}) {
    const uint32_t heads = size == 64 ? 17 : size == 136 ? 8 : 3;
    add({.rows = 2, .kv_len = 37, .heads = heads, .head_size = size, .value_size = value});
    add({.rows = 2,
         .q_len = 5,
         .kv_len = 33,
         .heads = 4,
         .head_size = size,
         .value_size = value,
         .suffix = "causal",
         .causal = true,
         .key_counts = {12, 25},
         .key_count_extra = 5,
         .poison = true,
         .spare = size % 4 == 0 ? 8u : 1u});
  }
  add({.rows = 3,
       .kv_len = 40,
       .heads = 5,
       .head_size = 96,
       .value_size = 64,
       .suffix = "counts",
       .key_counts = {0, 1, 40},
       .head_mask = true,
       .poison = true});
  add({.rows = 2,
       .q_len = 3,
       .kv_len = 48,
       .heads = 6,
       .head_size = 96,
       .value_size = 64,
       .suffix = "pages",
       .causal = true,
       .key_counts = {40, 7},
       .key_count_extra = 3,
       .poison = true,
       .page = 8});
  add({.rows = 1,
       .q_len = 9,
       .kv_len = 70,
       .heads = 2,
       .head_size = 64,
       .value_size = 32,
       .suffix = "window",
       .causal = true,
       .window = 11});
  add({.rows = 1,
       .q_len = 2,
       .kv_len = 50,
       .heads = 2,
       .head_size = 64,
       .value_size = 32,
       .suffix = "far_apart",
       .causal = true,
       .deviation = 1e4});
  // DeepSeek's sizes, and the largest ones.
  add({.rows = 1, .kv_len = 65, .heads = 16, .head_size = 576, .value_size = 512});
  add({.rows = 1,
       .q_len = 17,
       .kv_len = 40,
       .heads = 16,
       .head_size = 576,
       .value_size = 512,
       .suffix = "causal",
       .causal = true});
  add({.rows = 1, .kv_len = 5, .heads = 2, .head_size = 1024, .value_size = 960});
  for (uint32_t page : {0u, 32u})
    add({.rows = 2,
         .kv_len = 1088,
         .heads = 20,
         .head_size = 96,
         .value_size = 64,
         .suffix = page > 0 ? "shares_pages" : "shares",
         .causal = true,
         .key_counts = {1087, 511},
         .key_count_extra = 1,
         .head_mask = true,
         .poison = true,
         .split_counters = true,
         .page = page});
  add({.rows = 3,
       .kv_len = 513,
       .heads = 3,
       .head_size = 40,
       .value_size = 24,
       .suffix = "shares_counts",
       .key_counts = {0, 1, 513},
       .poison = true,
       .split_counters = true});
  add({.rows = 1,
       .kv_len = 700,
       .heads = 16,
       .head_size = 576,
       .value_size = 512,
       .suffix = "shares",
       .causal = true,
       .split_counters = true});
  return list;
}

}  // namespace mulciber::conformance
