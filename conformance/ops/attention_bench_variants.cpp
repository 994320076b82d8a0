// Every kind of attention at one size, for the bench; attention_variants.h declares the list.
#include <algorithm>

#include "conformance/ops/attention_variants.h"

namespace mulciber::conformance {

std::vector<AttentionVariant> attention_kinds(const AttentionVariant& dense) {
  const uint32_t keys = static_cast<uint32_t>(dense.kv_len), window = std::max(1u, keys / 16);
  std::vector<AttentionVariant> list;
  const auto add = [&](const char* name, auto change) {
    AttentionVariant v = dense;
    v.suffix = name;
    change(v);
    list.push_back(std::move(v));
  };
  const auto score = [](AttentionScore kind) {
    return [=](AttentionVariant& v) { v.score = kind; };
  };
  add("scaled_dot", [](AttentionVariant&) {});
  add("causal", [](AttentionVariant& v) { v.causal = true; });
  add("key_padding", [&](AttentionVariant& v) { v.key_counts = {keys - keys / 4}; });
  add("soft_cap", [](AttentionVariant& v) { v.soft_cap = 30; });
  add("relative_bias", [](AttentionVariant& v) {  // T5, ALiBi
    v.bias = AttentionBias::kRelative;
    v.bias_span = 128;
  });
  // A mask of 16,384 by 16,384 floats is larger than most devices can bind.
  if (dense.q_len * dense.kv_len <= 1 << 24)
    add("float_mask", [](AttentionVariant& v) { v.bias = AttentionBias::kMask; });
  if (dense.heads % 4 == 0) add("grouped", [](AttentionVariant& v) { v.kv_heads = v.heads / 4; });
  add("multi_query", [](AttentionVariant& v) { v.kv_heads = 1; });
  add("additive", score(AttentionScore::kAdditive));
  add("graph_v2", score(AttentionScore::kLeaky));
  add("gaussian", score(AttentionScore::kDistance));
  add("hard", [](AttentionVariant& v) { v.hard = true; });
  add("sliding_window", [&](AttentionVariant& v) {
    v.causal = true;
    v.window = window;
  });
  add("symmetric_window", [&](AttentionVariant& v) { v.window = window; });
  add("local_m", [&](AttentionVariant& v) {
    v.window = window;
    v.center = AttentionCenter::kPosition;
    v.center_sigma = static_cast<float>(window) / 2;
  });
  add("local_p", [&](AttentionVariant& v) {
    v.center = AttentionCenter::kPredicted;
    v.center_sigma = static_cast<float>(window) / 2;
    v.center_reach = static_cast<float>(window);
  });
  if (dense.q_len == dense.kv_len && keys >= 256) {
    add("longformer", [&](AttentionVariant& v) {
      v.query_offset = 0;
      v.window = window;
      v.keys = longformer_keys(keys, window, {0, keys / 2});
    });
    add("bigbird", [&](AttentionVariant& v) {
      v.query_offset = 0;
      v.keys = bigbird_keys(keys, {.block = 64,
                                   .window_blocks = 1,
                                   .global_blocks = {0},
                                   .random_blocks = random_blocks((keys + 63) / 64, 2, 1)});
    });
  }
  return list;
}

}  // namespace mulciber::conformance
