// C functions for attention without a model.
#include "mulciber/c/attention.h"

#include <algorithm>

#include "capi/attention_arrays.h"
#include "capi/handles.h"

struct MulciberAttention {
  mulciber::Attention attention;
};

namespace mulciber::c {
namespace {

std::vector<std::vector<uint32_t>> block_lists(const MulciberBlockLists* from, const char* name) {
  const auto lists = of_any_version(from, name);
  const uint32_t* offsets = &given_to(lists.offsets, "offsets");
  if (offsets[0] != 0 || !std::is_sorted(offsets, offsets + size_t{lists.count} + 1))
    throw SettingError(name, "has offsets that do not ascend from 0",
                       "give where each list begins, and where the last one ends");
  if (offsets[lists.count] > 0) given_to(lists.blocks, "blocks");
  std::vector<std::vector<uint32_t>> result;
  for (uint32_t i = 0; i < lists.count; ++i)
    result.emplace_back(lists.blocks + offsets[i], lists.blocks + offsets[i + 1]);
  return result;
}

BigBird bigbird_pattern(const MulciberBigBird* from) {
  const auto bigbird = of_any_version(from, "MulciberBigBird");
  BigBird result;
  if (bigbird.block > 0) result.block = bigbird.block;
  result.window_blocks = bigbird.window_blocks;
  result.global_blocks =
      copied_numbers(bigbird.global_blocks, bigbird.global_count, "global_blocks");
  if (bigbird.random_blocks)
    result.random_blocks = block_lists(bigbird.random_blocks, "random_blocks");
  return result;
}

void add_pattern(AttentionDescription& to, const MulciberAttentionDescription& from) {
  if ((from.longformer != nullptr) + (from.bigbird != nullptr) + (from.listed != nullptr) > 1)
    throw SettingError("pattern", "is given twice", "give longformer, bigbird or listed alone");
  if (from.longformer) {
    const auto longformer = of_any_version(from.longformer, "MulciberLongformer");
    Longformer pattern = {
        copied_numbers(longformer.global_tokens, longformer.global_count, "global_tokens")};
    if (longformer.block > 0) pattern.block = longformer.block;
    to.pattern = std::move(pattern);
  } else if (from.bigbird) {
    to.pattern = bigbird_pattern(from.bigbird);
  } else if (from.listed) {
    const auto listed = of_any_version(from.listed, "MulciberListedKeys");
    to.pattern = ListedKeys{std::max(listed.block_queries, 1u), std::max(listed.block_keys, 1u),
                            block_lists(listed.lists, "lists")};
  }
}

void add_bias(AttentionDescription& to, const MulciberAttentionDescription& from) {
  if (from.alibi && from.t5) throw SettingError("bias", "is given twice", "give alibi or t5 alone");
  if (from.alibi) {
    const auto alibi = of_any_version(from.alibi, "MulciberAlibiBias");
    to.bias = AlibiBias{copied_numbers(alibi.slopes, alibi.slope_count, "slopes")};
  } else if (from.t5) {
    const auto t5 = of_any_version(from.t5, "MulciberT5Bias");
    T5Bias bias = {.table = float_array(t5.table, "table")};
    if (t5.max_distance > 0) bias.max_distance = t5.max_distance;
    bias.bidirectional = t5.unidirectional == 0;
    to.bias = std::move(bias);
  }
}

LocalAttention local_attention(const MulciberLocalAttention* from) {
  const auto local = of_any_version(from, "MulciberLocalAttention");
  return {.sigma = local.sigma,
          .reach = local.reach,
          .hidden = optional_projection(local.hidden, "hidden"),
          .out = optional_projection(local.out, "out")};
}

MemoryCompression memory_compression(const MulciberMemoryCompression* from) {
  const auto compression = of_any_version(from, "MulciberMemoryCompression");
  return {
      .keys = float_array(compression.keys, "keys"),
      .values = float_array(compression.values, "values"),
      .keys_bias = copied_numbers(compression.keys_bias, compression.keys_bias_count, "keys_bias"),
      .values_bias =
          copied_numbers(compression.values_bias, compression.values_bias_count, "values_bias")};
}

AttentionDescription attention_description(const MulciberAttentionDescription* given) {
  const auto from = of_any_version(given, "MulciberAttentionDescription");
  AttentionDescription to = {.heads = std::max(from.heads, 1u), .kv_heads = from.kv_heads};
  to.query = optional_projection(from.query, "query");
  to.key = optional_projection(from.key, "key");
  to.value = optional_projection(from.value, "value");
  to.output = optional_projection(from.output, "output");
  to.score = attention_score(from.score);
  if (from.scale != 0) to.scale = from.scale;
  if (from.leaky_slope != 0) to.leaky_slope = from.leaky_slope;
  to.soft_cap = from.soft_cap;
  to.score_vector = copied_numbers(from.score_vector, from.vector_count, "score_vector");
  add_bias(to, from);
  add_pattern(to, from);
  to.causal = from.causal != 0;
  to.window = from.window;
  to.hard = from.hard != 0;
  to.half = from.half != 0;
  if (from.local) to.local = local_attention(from.local);
  if (from.compression) to.compression = memory_compression(from.compression);
  to.head_mask = copied_numbers(from.head_mask, from.head_mask_count, "head_mask");
  return to;
}

/// Lists of blocks, and their form in C, which points into this object.
struct ShownBlockLists {
  std::vector<uint32_t> offsets = {0}, blocks = {};
  MulciberBlockLists shown = {};
};

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_create_attention(MulciberContext* context, MulciberDevice* device,
                                         const MulciberAttentionDescription* description,
                                         MulciberAttention** attention) {
  return guarded(context, [&] {
    given_to(attention, "attention") = nullptr;
    *attention = new MulciberAttention{
        Attention(given_to(device, "device").device, attention_description(description))};
  });
}

void mulciber_destroy_attention(MulciberAttention* attention) { delete attention; }

MulciberStatus mulciber_trim_attention(MulciberContext* context, MulciberAttention* attention,
                                       uint64_t* freed) {
  return guarded(context, [&] {
    if (freed) *freed = 0;
    const uint64_t bytes = given_to(attention, "attention").attention.trim();
    if (freed) *freed = bytes;
  });
}

MulciberStatus mulciber_compute_attention(MulciberContext* context, MulciberAttention* attention,
                                          const MulciberAttentionInputs* inputs,
                                          MulciberResult** result,
                                          const MulciberFloatArray** output,
                                          const MulciberFloatArray** weights) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(output, "output") = nullptr;
    if (weights) *weights = nullptr;
    Attention& by = given_to(attention, "attention").attention;
    const auto from = of_any_version(inputs, "MulciberAttentionInputs");
    const FloatArray queries = float_array(from.queries, "queries");
    // Arrays that are given twice are copied once.
    std::optional<FloatArray> own_keys, own_values;
    const FloatArray& keys =
        from.keys == from.queries ? queries : own_keys.emplace(float_array(from.keys, "keys"));
    const bool given_before = from.values == from.keys || from.values == from.queries;
    const FloatArray& before = from.values == from.queries ? queries : keys;
    const FloatArray& values =
        given_before ? before : own_values.emplace(float_array(from.values, "values"));
    AttentionInputs given = {.queries = queries, .keys = keys, .values = values};
    given.key_counts = copied_numbers(from.key_counts, from.key_count_count, "key_counts");
    if (from.mask) given.mask = float_array(from.mask, "mask");
    if (from.has_query_offset) given.query_offset = from.query_offset;
    given.weights = weights != nullptr;
    give_attention_result(by(given), result, output, weights);
  });
}

MulciberStatus mulciber_random_blocks(MulciberContext* context, uint32_t blocks, uint32_t each,
                                      uint32_t seed, MulciberResult** result,
                                      const MulciberBlockLists** lists) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(lists, "lists") = nullptr;
    constexpr uint32_t kMostListed = 1 << 28, kMostBlocks = 1 << 24;
    if (blocks > kMostBlocks || uint64_t{blocks} * std::min(each, blocks) > kMostListed)
      throw SettingError("blocks", fmt::format("are {}, with {} for each", blocks, each),
                         fmt::format("give at most {}, and {} in all", kMostBlocks, kMostListed));
    auto shown = std::make_shared<ShownBlockLists>();
    for (const std::vector<uint32_t>& list : random_blocks(blocks, each, seed)) {
      shown->blocks.insert(shown->blocks.end(), list.begin(), list.end());
      shown->offsets.push_back(static_cast<uint32_t>(shown->blocks.size()));
    }
    shown->shown = {.size = sizeof(MulciberBlockLists),
                    .count = blocks,
                    .offsets = shown->offsets.data(),
                    .blocks = shown->blocks.data()};
    *result = new MulciberResult{shown};
    *lists = &shown->shown;
  });
}
