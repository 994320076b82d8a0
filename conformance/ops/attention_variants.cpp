#include "conformance/ops/attention_variants.h"

#include <fmt/format.h>

#include "conformance/op_case.h"

namespace mulciber::conformance {

std::vector<AttentionVariant> attention_variants() {
  using Variant = AttentionVariant;
  std::vector<Variant> list;
  auto add = [&](Variant v) { list.push_back(std::move(v)); };
  // Head sizes for every loop and tail; sizes of 1, primes, tile edges and their neighbours.
  for (uint32_t size : {1, 3, 14, 16, 24, 32, 48, 64, 80, 128, 254, 256}) {
    add({.rows = 2, .q_len = 5, .kv_len = 19, .heads = 2, .head_size = size});
    add({.rows = 1, .q_len = 1, .kv_len = 67, .heads = 3, .head_size = size});
    add({.rows = 1, .q_len = 17, .kv_len = 33, .heads = 1, .head_size = size});
  }
  for (uint64_t q_len : {1, 3, 4, 7, 8, 9, 16, 31, 65}) {
    add({.rows = 3, .q_len = q_len, .kv_len = q_len, .heads = 4, .head_size = 32});
  }
  for (uint64_t kv_len : {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129}) {
    add({.rows = 1, .q_len = 9, .kv_len = kv_len, .heads = 2, .head_size = 32});
    add({.rows = 2, .q_len = 1, .kv_len = kv_len, .heads = 2, .head_size = 32});
  }
  add({.rows = 80, .q_len = 1, .kv_len = 21, .heads = 4, .head_size = 32});
  add({.rows = 7, .q_len = 60, .kv_len = 60, .heads = 4, .head_size = 32});

  // Keys and values of different sizes; strides and offsets that are not aligned for vector loads.
  add({.rows = 2, .q_len = 9, .kv_len = 21, .heads = 3, .head_size = 24, .value_size = 40});
  add({.rows = 2, .q_len = 9, .kv_len = 21, .heads = 2, .head_size = 64, .value_size = 16});
  add({.rows = 1, .q_len = 12, .kv_len = 40, .heads = 2, .head_size = 7, .value_size = 5});
  add({.rows = 2,
       .q_len = 9,
       .kv_len = 21,
       .heads = 2,
       .head_size = 32,
       .suffix = "spare1",
       .spare = 1});
  add({.rows = 2,
       .q_len = 1,
       .kv_len = 21,
       .heads = 2,
       .head_size = 32,
       .suffix = "spare4",
       .spare = 4});
  add({.rows = 2,
       .q_len = 9,
       .kv_len = 21,
       .heads = 2,
       .head_size = 16,
       .suffix = "spare8",
       .spare = 8});

  // Causal, with fewer, equally many and more queries than keys.
  for (uint64_t kv_len : {4, 16, 17, 40, 100}) {
    add({.rows = 2,
         .q_len = 17,
         .kv_len = kv_len,
         .heads = 2,
         .head_size = 32,
         .suffix = "causal",
         .causal = true});
  }
  add({.rows = 1,
       .q_len = 1,
       .kv_len = 23,
       .heads = 2,
       .head_size = 32,
       .suffix = "causal",
       .causal = true});
  add({.rows = 1,
       .q_len = 33,
       .kv_len = 33,
       .heads = 2,
       .head_size = 5,
       .suffix = "causal",
       .causal = true});
  add({.rows = 2,
       .q_len = 9,
       .kv_len = 30,
       .heads = 2,
       .head_size = 32,
       .suffix = "causal_counts",
       .causal = true,
       .key_counts = {3, 27},
       .poison = true});

  // Key counts: none, some, all; one for all rows; more than exist; with NaN past the counted keys.
  for (uint64_t q_len : {1, 6, 19}) {
    add({.rows = 4,
         .q_len = q_len,
         .kv_len = 37,
         .heads = 2,
         .head_size = 32,
         .suffix = "counts",
         .key_counts = {0, 1, 20, 37},
         .poison = true});
    add({.rows = 3,
         .q_len = q_len,
         .kv_len = 37,
         .heads = 2,
         .head_size = 24,
         .suffix = "count_for_all",
         .key_counts = {16},
         .key_count_extra = 1,
         .poison = true});
    add({.rows = 2,
         .q_len = q_len,
         .kv_len = 11,
         .heads = 2,
         .head_size = 3,
         .suffix = "counts",
         .key_counts = {5, 0},
         .poison = true});
  }
  add({.rows = 2,
       .q_len = 3,
       .kv_len = 9,
       .heads = 2,
       .head_size = 16,
       .suffix = "counts_past_end",
       .key_counts = {8, 20},
       .key_count_extra = 2});

  // Several rows of queries for one row of keys; grouped heads; ancestry; head masks.
  for (uint64_t q_len : {1, 2, 5}) {
    add({.rows = 12,
         .q_len = q_len,
         .kv_len = 25,
         .heads = 2,
         .head_size = 32,
         .suffix = "beams",
         .rows_per_kv = 4,
         .key_counts = {25, 0, 9},
         .poison = true});
    add({.rows = 6,
         .q_len = q_len,
         .kv_len = 18,
         .heads = 2,
         .head_size = 16,
         .suffix = "beams_causal",
         .causal = true,
         .rows_per_kv = 3});
    add({.rows = 6,
         .q_len = q_len,
         .kv_len = 25,
         .heads = 4,
         .head_size = 32,
         .suffix = "ancestry",
         .key_counts = {14},
         .key_count_extra = 1,
         .ancestry = true});
    add({.rows = 3,
         .q_len = q_len,
         .kv_len = 9,
         .heads = 2,
         .head_size = 5,
         .suffix = "ancestry",
         .ancestry = true});
    add({.rows = 2,
         .q_len = q_len,
         .kv_len = 40,
         .heads = 6,
         .kv_heads = 2,
         .head_size = 32,
         .suffix = "grouped"});
    add({.rows = 2,
         .q_len = q_len,
         .kv_len = 20,
         .heads = 4,
         .head_size = 32,
         .suffix = "head_mask",
         .key_counts = {20, 7},
         .head_mask = true,
         .poison = true});
  }
  // Grouped heads in decoding and in chunks: the heads of a group share a tile, and tiles end
  // inside groups.
  for (uint32_t group : {2, 3, 4, 8}) {
    for (uint64_t q_len : {1, 11}) {
      add({.rows = 2,
           .q_len = q_len,
           .kv_len = 45,
           .heads = 2 * group,
           .kv_heads = 2,
           .head_size = 64,
           .suffix = group == 4 ? "chunk_sinks" : "chunk",
           .causal = true,
           .key_counts = {3, 21},  // tokens before this chunk
           .key_count_extra = static_cast<uint32_t>(q_len),
           .head_mask = group == 3,
           .sinks = group == 4,
           .poison = true});
    }
  }
  // Paged keys: in decoding, in chunks, and in prompts for matrix units.
  add({.rows = 3,
       .q_len = 1,
       .kv_len = 96,
       .heads = 4,
       .kv_heads = 2,
       .head_size = 64,
       .suffix = "pages",
       .causal = true,
       .key_counts = {40, 0, 95},
       .key_count_extra = 1,
       .poison = true,
       .page = 32});
  add({.rows = 2,
       .q_len = 19,
       .kv_len = 48,
       .heads = 2,
       .kv_heads = 1,
       .head_size = 64,
       .suffix = "pages",
       .causal = true,
       .key_counts = {3, 29},
       .key_count_extra = 19,
       .poison = true,
       .window = 30,
       .page = 8});
  // A chunk padded on the right, which may count keys past the end; a fixed position; queries
  // before the first key.
  for (uint32_t window : {0u, 4u}) {
    add({.rows = 2,
         .q_len = 16,
         .kv_len = 30,
         .heads = 4,
         .kv_heads = 2,
         .head_size = 32,
         .suffix = fmt::format("chunk_past_end_w{}", window),
         .causal = true,
         .key_counts = {19, 0},
         .key_count_extra = 16,
         .window = window});
    for (int32_t offset : {-5, 0, 14}) {
      add({.rows = 2,
           .q_len = 17,
           .kv_len = 29,
           .heads = 2,
           .head_size = 24,
           .suffix = fmt::format("offset_{}_w{}", name_part(offset), window),
           .causal = true,
           .key_counts = {8, 29},
           .query_offset = offset,
           .window = window});
    }
  }
  // Windows: one key, smaller and larger than tiles; to both sides; in decoding; NaN in keys
  // outside of the window.
  for (uint32_t window : {1, 5, 16, 33, 1000}) {
    add({.rows = 2,
         .q_len = 40,
         .kv_len = 40,
         .heads = 2,
         .head_size = 32,
         .suffix = fmt::format("window_{}", window),
         .causal = true,
         .window = window});
    add({.rows = 2,
         .q_len = 40,
         .kv_len = 71,
         .heads = 2,
         .head_size = 40,
         .suffix = fmt::format("around_{}", window),
         .query_offset = 13,
         .window = window});
    add({.rows = 2,
         .q_len = 1,
         .kv_len = 70,
         .heads = 4,
         .kv_heads = 2,
         .head_size = 32,
         .suffix = fmt::format("window_{}", window),
         .causal = true,
         .key_counts = {7, 64},
         .key_count_extra = 1,
         .poison = true,
         .window = window});
  }
  // Caps far above the scores and far below them.
  for (float cap : {0.5f, 3.0f, 50.0f}) {
    add({.rows = 1,
         .q_len = 18,
         .kv_len = 37,
         .heads = 2,
         .head_size = 32,
         .suffix = fmt::format("cap_{}", name_part(cap)),
         .causal = true,
         .deviation = 4,
         .soft_cap = cap});
  }
  // Biases by distance and by position, alone and with everything else.
  for (uint32_t span : {1, 8, 100}) {
    add({.rows = 2,
         .q_len = 20,
         .kv_len = 33,
         .heads = 3,
         .head_size = 24,
         .suffix = fmt::format("relative_{}", span),
         .query_offset = 4,
         .bias = AttentionBias::kRelative,
         .bias_span = span});
    add({.rows = 2,
         .q_len = 3,
         .kv_len = 33,
         .heads = 4,
         .kv_heads = 2,
         .head_size = 16,
         .suffix = fmt::format("relative_{}_capped", span),
         .causal = true,
         .key_counts = {8, 29},
         .window = 11,
         .soft_cap = 2,
         .bias = AttentionBias::kRelative,
         .bias_span = span});
  }
  for (AttentionBias bias : {AttentionBias::kMask, AttentionBias::kMaskPerRow,
                             AttentionBias::kMaskPerHead, AttentionBias::kMaskPerRowAndHead}) {
    for (uint64_t q_len : {1, 9}) {
      add({.rows = 4,
           .q_len = q_len,
           .kv_len = 21,
           .heads = 4,
           .kv_heads = 2,
           .head_size = 32,
           .suffix = fmt::format("mask_{}", static_cast<uint32_t>(bias)),
           .rows_per_kv = 2,
           .bias = bias});
    }
  }
  for (Variant& v : attention_split_variants()) add(std::move(v));
  for (Variant& v : attention_prefill_variants()) add(std::move(v));
  add({.rows = 5,
       .q_len = 11,
       .kv_len = 13,
       .heads = 8,
       .kv_heads = 1,
       .head_size = 20,
       .value_size = 12,
       .suffix = "grouped_causal",
       .causal = true});

  // Scores of about +-1e4, and almost equal scores.
  add({.rows = 1,
       .q_len = 9,
       .kv_len = 50,
       .heads = 2,
       .head_size = 32,
       .suffix = "large",
       .deviation = 100,
       .scale = 10});
  add({.rows = 1,
       .q_len = 1,
       .kv_len = 50,
       .heads = 2,
       .head_size = 32,
       .suffix = "large",
       .deviation = 100,
       .scale = 10});
  add({.rows = 1,
       .q_len = 9,
       .kv_len = 50,
       .heads = 2,
       .head_size = 32,
       .suffix = "tiny",
       .deviation = 1e-3});
  return list;
}

}  // namespace mulciber::conformance
