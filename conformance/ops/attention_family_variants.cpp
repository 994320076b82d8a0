// Other scores, hard and local attention, key patterns; attention_variants.h declares the list.
#include <fmt/format.h>

#include "conformance/op_case.h"
#include "conformance/ops/attention_variants.h"

namespace mulciber::conformance {

std::vector<AttentionVariant> attention_family_variants() {
  std::vector<AttentionVariant> list;
  const auto add = [&](AttentionVariant v) { list.push_back(std::move(v)); };

  // Scores: head sizes of 1 and around the workgroup size, groups, masks.
  const std::pair<AttentionScore, const char*> scores[] = {{AttentionScore::kAdditive, "additive"},
                                                           {AttentionScore::kLeaky, "leaky"},
                                                           {AttentionScore::kDistance, "distance"}};
  for (const auto& [score, name] : scores) {
    for (uint32_t size : {1, 11, 64}) {
      add({.rows = 2,
           .q_len = 5,
           .kv_len = 37,
           .heads = 2,
           .head_size = size,
           .value_size = 24,
           .suffix = name,
           .scale = 0.3f,
           .score = score});
    }
    add({.rows = 2,
         .q_len = 9,
         .kv_len = 33,
         .heads = 4,
         .kv_heads = 2,
         .head_size = 16,
         .suffix = fmt::format("{}_causal_counts", name),
         .causal = true,
         .key_counts = {12, 30},
         .poison = true,
         .scale = 0.5f,
         .window = 7,
         .soft_cap = 2,
         .score = score});
    add({.rows = 1,
         .q_len = 1,
         .kv_len = 50,
         .heads = 1,
         .head_size = 32,
         .suffix = fmt::format("{}_hard", name),
         .scale = 0.2f,
         .score = score,
         .hard = true});
    // Wide heads: one query, and tiles of 16 over the heads of a group, each head with its own
    // vector.
    for (uint64_t q_len : {1, 40}) {
      add({.rows = 2,
           .q_len = q_len,
           .kv_len = 45,
           .heads = 4,
           .kv_heads = 2,
           .head_size = 32,
           .suffix = fmt::format("{}_grouped", name),
           .scale = 0.3f,
           .score = score});
    }
  }

  // Hard attention: over several blocks, with masks, without any key, with ties that the first key
  // wins.
  add({.rows = 2,
       .q_len = 7,
       .kv_len = 100,
       .heads = 2,
       .head_size = 16,
       .suffix = "hard",
       .hard = true});
  add({.rows = 2,
       .q_len = 9,
       .kv_len = 40,
       .heads = 4,
       .kv_heads = 2,
       .head_size = 8,
       .suffix = "hard_masked",
       .causal = true,
       .key_counts = {0, 33},
       .head_mask = true,
       .poison = true,
       .hard = true});
  add({.rows = 8,
       .q_len = 6,
       .kv_len = 90,
       .heads = 1,
       .head_size = 1,
       .suffix = "hard_ties",
       .deviation = 100,
       .scale = 1,
       .hard = true});
  // Where every tanh is 1 or -1, all scores are equal.
  for (uint64_t q_len : {1, 40}) {
    add({.rows = 2,
         .q_len = q_len,
         .kv_len = 90,
         .heads = 2,
         .head_size = 8,
         .suffix = "hard_ties",
         .deviation = 1e3,
         .scale = 1,
         .score = AttentionScore::kAdditive,
         .hard = true});
    add({.rows = 2,
         .q_len = q_len,
         .kv_len = 70,
         .heads = 2,
         .head_size = 24,
         .suffix = "hard",
         .key_counts = {70, 21},
         .poison = true,
         .hard = true});
  }

  // Local attention: monotonic and predicted, with and without a reach, with padding.
  for (float reach : {0.0f, 4.0f}) {
    add({.rows = 2,
         .q_len = 8,
         .kv_len = 45,
         .heads = 2,
         .head_size = 12,
         .suffix = fmt::format("local_p_reach{}", name_part(reach)),
         .key_counts = {20, 45},
         .poison = true,
         .center = AttentionCenter::kPredicted,
         .center_sigma = 2,
         .center_reach = reach});
  }
  add({.rows = 2,
       .q_len = 8,
       .kv_len = 30,
       .heads = 2,
       .head_size = 12,
       .suffix = "local_m",
       .query_offset = 3,
       .window = 5,
       .center = AttentionCenter::kPosition,
       .center_sigma = 2});
  add({.rows = 1,
       .q_len = 8,
       .kv_len = 30,
       .heads = 2,
       .head_size = 12,
       .suffix = "local_m_additive",
       .query_offset = 0,
       .score = AttentionScore::kAdditive,
       .center = AttentionCenter::kPosition,
       .center_sigma = 3});

  for (uint64_t q_len : {1, 40}) {
    add({.rows = 2,
         .q_len = q_len,
         .kv_len = 61,
         .heads = 4,
         .kv_heads = 2,
         .head_size = 16,
         .suffix = "local_p",
         .key_counts = {29, 61},
         .poison = true,
         .center = AttentionCenter::kPredicted,
         .center_sigma = 3,
         .center_reach = 9});
    add({.rows = 2,
         .q_len = q_len,
         .kv_len = 61,
         .heads = 2,
         .head_size = 32,
         .suffix = "local_m",
         .query_offset = 9,
         .window = 11,
         .center = AttentionCenter::kPosition,
         .center_sigma = 4});
  }

  // Global tokens beside a window, with and without lists: results are equal, times differ.
  BlockSparseKeys longformer = longformer_keys(70, 5, {0, 33, 69}, 16);
  for (bool listed : {true, false}) {
    if (!listed) longformer.pattern = {};
    add({.rows = 2,
         .q_len = 70,
         .kv_len = 70,
         .heads = 2,
         .head_size = 32,
         .suffix = fmt::format("longformer_{}", listed ? "listed" : "masked"),
         .query_offset = 0,
         .window = 5,
         .keys = longformer});
  }
  // Block patterns: aligned to tiles of 16 and not, with different sizes for queries and keys, with
  // padding and causal.
  const std::vector<std::vector<uint32_t>> random = random_blocks(5, 2, 7);
  add({.rows = 2,
       .q_len = 70,
       .kv_len = 70,
       .heads = 2,
       .head_size = 32,
       .suffix = "bigbird16",
       .query_offset = 0,
       .keys = bigbird_keys(
           70, {.block = 16, .window_blocks = 1, .global_blocks = {0}, .random_blocks = random})});
  add({.rows = 2,
       .q_len = 19,
       .kv_len = 19,
       .heads = 4,
       .kv_heads = 2,
       .head_size = 24,
       .suffix = "bigbird4",
       .causal = true,
       .key_counts = {19, 11},
       .query_offset = 0,
       .keys = bigbird_keys(
           19, {.block = 4, .window_blocks = 1, .global_blocks = {0}, .random_blocks = random})});
  add({.rows = 2,
       .q_len = 3,
       .kv_len = 64,
       .heads = 2,
       .head_size = 32,
       .suffix = "blocks_at_the_end",
       .key_counts = {50, 64},
       .poison = true,
       .keys = block_sparse_keys(8, 24, {{}, {0}, {1}, {}, {0, 2}, {2}, {0, 1}, {0, 2}}),
       .sparse = true});
  add({.rows = 1,
       .q_len = 64,
       .kv_len = 96,
       .heads = 1,
       .head_size = 64,
       .suffix = "blocks_of_32_by_48",
       .query_offset = 32,
       .keys = block_sparse_keys(32, 48, {{0}, {1}, {0, 1}})});
  // Queries before the first block and past the last one see nothing.
  add({.rows = 1,
       .q_len = 40,
       .kv_len = 40,
       .heads = 2,
       .head_size = 8,
       .suffix = "outside_the_blocks",
       .query_offset = -7,
       .keys = block_sparse_keys(8, 8, {{0, 4}, {1, 2, 3}})});
  // A graph: lists of neighbours, GAT's scores with one number per head.
  add({.rows = 1,
       .q_len = 12,
       .kv_len = 12,
       .heads = 3,
       .head_size = 1,
       .value_size = 8,
       .suffix = "graph",
       .scale = 1,
       .query_offset = 0,
       .score = AttentionScore::kLeaky,
       .keys = block_sparse_keys(1, 1,
                                 {{0, 1},
                                  {1, 5, 6, 11},
                                  {2},
                                  {},
                                  {0, 4},
                                  {1, 5},
                                  {1, 6, 7},
                                  {6, 7},
                                  {8},
                                  {9, 10},
                                  {9, 10},
                                  {1, 3, 5, 7, 9, 11}}),
       .sparse = true});
  return list;
}

}  // namespace mulciber::conformance
