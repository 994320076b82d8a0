#include "conformance/vectors/attention_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "layers/key_pattern.h"
#include "mulciber/error.h"

namespace mulciber::conformance {
namespace {

/// Converts (heads, in, out) to (heads, out, in).
std::vector<float> transposed(const Recorded& recorded) {
  const uint64_t in = recorded.shape[1], out = recorded.shape[2];
  std::vector<float> values(recorded.values.size());
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i / (in * out) * in * out + i % out * in + i / out % in] =
        static_cast<float>(recorded.values[i]);
  }
  return values;
}
}  // namespace

std::vector<double> side_by_side(const Recorded& recorded) {
  const uint64_t heads = recorded.shape[1], length = recorded.shape[2], size = recorded.shape[3];
  std::vector<double> values(recorded.values.size());
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t d = i % size, position = i / size % length, head = i / size / length % heads,
                   row = i / size / length / heads;
    values[((row * length + position) * heads + head) * size + d] = recorded.values[i];
  }
  return values;
}

int AttentionEntry::weight(const std::vector<float>& values, uint64_t out, uint64_t in) {
  const std::vector<float> all =
      block_diagonal(values, heads, static_cast<uint32_t>(out), static_cast<uint32_t>(in));
  return input({heads * out, heads * in}, {all.begin(), all.end()}, type);
}

void AttentionEntry::read() {
  const Recorded q = tensor("q", {batch, heads, q_len, d_q}),
                 k = tensor("k", {batch, kv_heads, kv_len, d_k}),
                 v = tensor("v", {batch, kv_heads, kv_len, d_v});
  // Keys and values are two tensors here, like in a key-value memory.
  input({batch, q_len, heads * d_q}, side_by_side(q), type);
  input({batch, kv_len, kv_heads * d_k}, side_by_side(k), type);
  input({batch, kv_len, kv_heads * d_v}, side_by_side(v), type);
  inputs.emplace_back();  // the words, once they are known
  read_score();
  read_mask();
  read_bias();
  read_extra();
  inputs[3] = words_input(words.words());
}

void AttentionEntry::read_score() {
  parts.options.heads = heads;
  parts.options.kv_heads = kv_heads;
  parts.options.head_size = static_cast<uint32_t>(d_k);
  parts.options.value_size = static_cast<uint32_t>(d_v);
  const std::string score = json.at("score");
  const Json params = member(json, "score_params");
  parts.options.scale = 1;
  if (score == "scaled_dot")
    parts.options.scale = static_cast<float>(params.value("scale", 1 / std::sqrt(double(d_q))));
  if (score == "gaussian") {
    const double sigma = params.at("sigma");
    parts.options.score = AttentionScore::kDistance;
    parts.options.scale = static_cast<float>(1 / (2 * sigma * sigma));
  }
  if (score == "general")
    parts.query = weight(transposed(tensor("p_W", {heads, d_q, d_k})), d_k, d_q);
  if (score == "lowrank") {
    const Recorded u = tensor("p_U"), v = tensor("p_V");
    const uint64_t rank = u.shape.back();
    parts.query = weight(transposed(v), rank, d_q);
    parts.key = weight(transposed(u), rank, d_k);
    parts.options.head_size = static_cast<uint32_t>(rank);
  }
  if (score == "additive" || score == "concat") {
    const Recorded v = tensor("p_v");
    const uint64_t size = v.shape.back();
    parts.options.score = AttentionScore::kAdditive;
    parts.options.head_size = static_cast<uint32_t>(size);
    std::vector<float> of_query, of_key;
    if (score == "additive") {
      of_query = tensor("p_Wq", {heads, size, d_q}).floats();
      of_key = tensor("p_Wk", {heads, size, d_k}).floats();
      const Recorded bias = tensor("p_b", {heads, size});
      parts.query_bias = input({heads * size}, bias.values, DataType::kF32);
    } else {
      const std::vector<float> both = tensor("p_W", {heads, size, d_q + d_k}).floats();
      for (uint64_t i = 0; i < both.size(); ++i)
        (i % (d_q + d_k) < d_q ? of_query : of_key).push_back(both[i]);
    }
    parts.query = weight(of_query, size, d_q);
    parts.key = weight(of_key, size, d_k);
    parts.vector = input({heads, size}, v.values, DataType::kF32);
  }
  const auto cap = json.find("softcap");
  if (cap != json.end() && cap->is_number()) parts.options.soft_cap = cap->get<float>();
}

void AttentionEntry::read_mask() {
  const std::string mask = json.at("mask");
  const Json params = member(json, "mask_params");
  parts.options.query_offset = params.value("q_offset", 0);
  std::vector<uint32_t> lengths(batch, static_cast<uint32_t>(kv_len));
  const Json given = params.value("lengths", Json::array());
  for (size_t row = 0; row < given.size() && row < batch; ++row)
    lengths[row] = given[row].get<uint32_t>();
  parts.control.key_counts = words.append(lengths);

  const auto length = static_cast<uint32_t>(kv_len);
  parts.options.causal = mask.starts_with("causal") || mask == "sliding";
  if (mask == "sliding") parts.options.window = params.at("window");
  if (mask == "local" || mask == "longformer")
    parts.options.window = params.at("window").get<uint32_t>() + 1;
  BlockSparseKeys keys;
  if (mask == "longformer") {
    keys = longformer_keys(length, parts.options.window,
                           params.at("global_tokens").get<std::vector<uint32_t>>(), 8);
  }
  if (mask == "bigbird") {
    keys = bigbird_keys(length,
                        {params.at("block"), params.at("window_blocks"),
                         params.at("global_blocks").get<std::vector<uint32_t>>(),
                         params.at("random_blocks").get<std::vector<std::vector<uint32_t>>>()});
  }
  if (mask == "dead_rows") {
    std::vector<std::vector<uint32_t>> lists(q_len, {0});
    for (const Json& row : params.at("dead_rows")) lists.at(row.get<size_t>()).clear();
    keys = block_sparse_keys(1, length, lists);
  }
  parts.options.pattern = keys.pattern;
  parts.options.global_tokens = !keys.globals.empty();
  if (keys.pattern.block_queries != 0) parts.control.pattern = words.append(keys.words);
  if (parts.options.global_tokens) parts.control.globals = words.append(keys.globals);
}

void AttentionEntry::read_bias() {
  const std::string bias = text(json, "bias");
  if (bias.empty()) return;
  const Json extra = member(json, "extra");
  if (bias == "alibi") {
    parts.options.bias_span = static_cast<uint32_t>(kv_len + q_len);
    parts.options.bias = AttentionBias::kRelative;
    const Recorded slopes = tensor("alibi_slopes", {heads});
    if (slopes.floats() != alibi_slopes(heads) && heads > 3) {
      throw ModelError(file.path().string(),
                       fmt::format("`{}` has other slopes than ALiBi's", printable(name)), "");
    }
    parts.control.bias = words.append(alibi_bias(slopes.floats(), parts.options.bias_span));
  } else if (bias.starts_with("t5")) {
    const T5Buckets t5{extra.at("num_buckets"), extra.at("max_distance"),
                       extra.at("bidirectional")};
    parts.options.bias_span = t5.max_distance;
    parts.options.bias = AttentionBias::kRelative;
    parts.control.bias =
        words.append(t5_bias(tensor("rel_table", {t5.buckets, heads}).floats(), heads, t5));
  } else {
    const Recorded mask = tensor("add_mask");
    const uint32_t per_row = mask.shape[0] > 1 ? 1 : 0, per_head = mask.shape[1] > 1 ? 2 : 0;
    parts.options.bias = static_cast<AttentionBias>(static_cast<uint32_t>(AttentionBias::kMask) +
                                                    per_row + per_head);
    parts.control.bias = words.append(mask.floats());
  }
}

void AttentionEntry::read_extra() {
  const Json extra = member(json, "extra");
  parts.options.hard = extra.contains("hard");
  if (!extra.contains("local")) return;
  const Json& local = extra["local"];
  const bool predict = local.at("predict"), gauss = local.at("gauss");
  const auto reach = local.at("D").get<uint32_t>();
  if (gauss) parts.options.center_sigma = local.at("sigma").get<float>();
  if (predict) {
    parts.options.center = AttentionCenter::kPredicted;
    const Recorded hidden = tensor("p_Wp"), out = tensor("p_vp");
    parts.center_hidden = weight(hidden.floats(), hidden.shape[1], d_q);
    parts.center_out = weight(out.floats(), 1, hidden.shape[1]);
    if (local.at("window_only")) parts.options.center_reach = static_cast<float>(reach);
  } else {
    if (gauss) parts.options.center = AttentionCenter::kPosition;
    if (local.at("window_only")) {
      parts.options.window =
          parts.options.window == 0 ? reach + 1 : std::min(parts.options.window, reach + 1);
    }
  }
}

}  // namespace mulciber::conformance
