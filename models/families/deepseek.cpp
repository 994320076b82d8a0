// DeepSeek V2 and V3: multi-head latent attention, group-limited routing, shared experts.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr DecoderNames deepseek_names() {
  DecoderNames names = kLlamaNames;
  names.query_down = "self_attn.q_a_proj";
  names.query_norm = "self_attn.q_a_layernorm";
  names.query_up = "self_attn.q_b_proj";
  names.key_value_down = "self_attn.kv_a_proj_with_mqa";
  names.key_value_norm = "self_attn.kv_a_layernorm";
  names.key_value_up = "self_attn.kv_b_proj";
  names.router = "mlp.gate";
  names.router_choice = "mlp.gate.e_score_correction_bias";
  names.expert_gate = "mlp.experts.{}.gate_proj";
  names.expert_up = "mlp.experts.{}.up_proj";
  names.expert_down = "mlp.experts.{}.down_proj";
  names.shared_gate = "mlp.shared_experts.gate_proj";
  names.shared_up = "mlp.shared_experts.up_proj";
  names.shared_down = "mlp.shared_experts.down_proj";
  return names;
}

uint32_t deepseek_size(const ConfigReader& config, const char* key) {
  return static_cast<uint32_t>(config.integer(key, 2, kWidest));
}

void read_deepseek_attention(const ConfigReader& config, DecoderConfig& decoder) {
  DecoderAttention& attention = decoder.attention;
  DecoderLatent latent;
  latent.query_rank =
      static_cast<uint32_t>(config.optional_integer("q_lora_rank", 0, kWidest).value_or(0));
  latent.rank = deepseek_size(config, "kv_lora_rank");
  latent.rotated = deepseek_size(config, "qk_rope_head_dim");
  latent.value_size = deepseek_size(config, "v_head_dim");
  attention.head_size = latent.rotated + deepseek_size(config, "qk_nope_head_dim");
  attention.kv_heads = attention.heads;
  attention.latent = latent;
  decoder.ropes = {
      read_rope_of(config, nullptr, {.head_size = latent.rotated, .context = decoder.context})};
  RopeConfig& rope = decoder.ropes[0];
  if (config.boolean_or("rope_interleave", true)) rope.pairs = RotaryPairs::kNeighbours;
  attention.scale = 1 / std::sqrt(static_cast<float>(attention.head_size));
  // YaRN scales all of the score with the context's growth, not only its rotated part.
  const RopeScaling& scaling = rope.scaling;
  if (scaling.kind == RopeScalingKind::kYarn && scaling.factor > 1 && scaling.mscale_all_dim) {
    const double growth = 0.1 * *scaling.mscale_all_dim * std::log(scaling.factor) + 1;
    attention.scale *= static_cast<float>(growth * growth);
  }
}

void read_deepseek_experts(const ConfigReader& config, DecoderConfig& decoder) {
  DecoderFeedForward& feed_forward = decoder.feed_forward;
  const int64_t dense = config.integer_or("first_k_dense_replace", 0, 0, kMostLayers),
                step = config.integer_or("moe_layer_freq", 1, 1, kMostLayers);
  for (size_t i = 0; i < decoder.layers.size(); ++i)
    decoder.layers[i].dense =
        static_cast<int64_t>(i) < dense || static_cast<int64_t>(i) % step != 0;
  feed_forward.dense_hidden = feed_forward.hidden;
  feed_forward.hidden = deepseek_size(config, "moe_intermediate_size");
  DecoderExperts experts;
  experts.count = static_cast<uint32_t>(config.integer("n_routed_experts", 1, kMostExperts));
  experts.per_token = static_cast<uint32_t>(config.integer(
      "num_experts_per_tok", 1, std::min<int64_t>(experts.count, kMostExpertsPerToken)));
  experts.shared_hidden =
      feed_forward.hidden * static_cast<uint32_t>(config.integer_or("n_shared_experts", 0, 0, 64));
  DecoderRouting routing;
  const auto count = [&](const char* key) {
    return static_cast<uint32_t>(config.optional_integer(key, 1, 32).value_or(1));
  };
  routing.groups = count("n_group");
  routing.groups_used = count("topk_group");
  if (routing.groups_used > routing.groups || experts.count % routing.groups != 0)
    config.fail("n_group", "and topk_group do not divide the experts");
  routing.scale = static_cast<float>(config.number_or("routed_scaling_factor", 1, 1e-6, 1e6));
  experts.routing = routing;
  feed_forward.experts = experts;
}

DecoderConfig read_deepseek_shared(const ConfigReader& given) {
  // Heads have sizes of their own; if head_dim is present, it is the rotated size.
  Json json = given.json();
  json["head_dim"] = deepseek_size(given, "qk_rope_head_dim");
  const ConfigReader config(json, given.where(), given.remedy());
  DecoderConfig decoder = read_llama_like(config);
  require_absent(config, "attention_bias");
  decoder.files.names = deepseek_names();
  read_deepseek_attention(config, decoder);
  read_deepseek_experts(config, decoder);
  return decoder;
}

/// Routing by a softmax over all experts; a group's score is its best expert's.
DecoderConfig read_deepseek_v2(const ConfigReader& config) {
  DecoderConfig decoder = read_deepseek_shared(config);
  const std::string method = config.text_or("topk_method", "greedy");
  DecoderExperts& experts = *decoder.feed_forward.experts;
  if (method == "greedy")
    experts.routing->groups = experts.routing->groups_used = 1;
  else if (method != "group_limited_greedy")
    config.fail("topk_method",
                "is '" + printable(method) + "'; greedy and group_limited_greedy are supported");
  experts.normalized = false;
  return decoder;
}

/// Routing by sigmoids, with a load-balancing bias on the choice; a group's score is the sum of its
/// two best.
DecoderConfig read_deepseek_v3(const ConfigReader& config) {
  DecoderConfig decoder = read_deepseek_shared(config);
  DecoderExperts& experts = *decoder.feed_forward.experts;
  experts.normalized = config.boolean_or("norm_topk_prob", true);
  experts.routing->sigmoid = experts.routing->bias = experts.routing->two_best = true;
  return decoder;
}

/// GGUF files use the architecture deepseek2 for both.
DecoderConfig read_deepseek_v2_or_v3(const ConfigReader& config) {
  const std::string scores = config.text_or("scoring_func", "softmax");
  return scores == "sigmoid" ? read_deepseek_v3(config) : read_deepseek_v2(config);
}

constexpr GgufKey kDeepSeekGgufKeys[] = {{"attention.q_lora_rank", "q_lora_rank"},
                                         {"attention.kv_lora_rank", "kv_lora_rank"},
                                         {"rope.dimension_count", "qk_rope_head_dim"},
                                         {"leading_dense_block_count", "first_k_dense_replace"},
                                         {"expert_feed_forward_length", "moe_intermediate_size"},
                                         {"expert_count", "n_routed_experts"},
                                         {"expert_shared_count", "n_shared_experts"},
                                         {"expert_weights_scale", "routed_scaling_factor"},
                                         {"expert_group_count", "n_group"},
                                         {"expert_group_used_count", "topk_group"}};

constexpr DecoderNames deepseek_gguf_names() {
  DecoderNames names = kGgufNames;
  names.query_down = "attn_q_a";
  names.query_norm = "attn_q_a_norm";
  names.query_up = "attn_q_b";
  names.key_value_down = "attn_kv_a_mqa";
  names.key_value_norm = "attn_kv_a_norm";
  names.key_value_up = "attn_kv_b";
  names.router_choice = "exp_probs_b.bias";
  return names;
}

/// Files since April 2025 have separate up-projections of keys and values, so that they can be
/// absorbed and the latent vector attended to as one head; `key_length` and `value_length` are then
/// that head's.
void rename_deepseek(const Checkpoint& checkpoint, DecoderNames& names) {
  if (!checkpoint.find("blk.0.attn_k_b.weight")) return;
  names.key_value_up = nullptr;
  names.k = "attn_k_b";
  names.v = "attn_v_b";
}

void complete_deepseek(const GgufMetadata& metadata, Json& config) {
  const bool apart = metadata.find("attention.key_length_mla") != nullptr;
  const auto size = [&](const char* key, const char* of_files_with_both) {
    return static_cast<int64_t>(metadata.number(apart ? key : of_files_with_both, 0));
  };
  config["qk_nope_head_dim"] = size("attention.key_length_mla", "attention.key_length") -
                               static_cast<int64_t>(metadata.number("rope.dimension_count", 0));
  config["v_head_dim"] = size("attention.value_length_mla", "attention.value_length");
  // Older files of V2 do not have the key. Source: enum expert_gating_func of llama.cpp.
  constexpr double kSoftmax = 1, kSigmoid = 2;
  const double gating = metadata.number("expert_gating_func", kSoftmax);
  if (gating != kSoftmax && gating != kSigmoid)
    metadata.fail(metadata.full("expert_gating_func"), "is neither 1 (softmax) nor 2 (sigmoid)");
  config["scoring_func"] = gating == kSigmoid ? "sigmoid" : "softmax";
  const GgufValue* norm = metadata.find("expert_weights_norm");
  const bool normalized = norm && norm->type == GgufType::kBool && norm->boolean();
  config["norm_topk_prob"] = normalized;
  if (gating == kSoftmax && normalized)
    metadata.fail(metadata.full("expert_weights_norm"),
                  "is true together with a softmax, which is not supported");
  if (metadata.number("expert_group_count", 1) > 1) config["topk_method"] = "group_limited_greedy";
  // The converter writes a tenth of mscale_all_dim, which equals mscale in these models.
  const double multiplier = 10 * metadata.number("rope.scaling.yarn_log_multiplier", 0);
  if (config.contains("rope_scaling") && multiplier > 0)
    config["rope_scaling"]["mscale"] = config["rope_scaling"]["mscale_all_dim"] = multiplier;
}

constexpr const char* kDeepSeekEndPieces[] = {"<\uff5cend\u2581of\u2581sentence\uff5c>"};

}  // namespace

constinit const DecoderFamily kDeepSeekV2 = {.model_type = "deepseek_v2",
                                             .read = read_deepseek_v2_or_v3,
                                             .gguf = GgufFamily{.architecture = "deepseek2",
                                                                .more_keys = kDeepSeekGgufKeys,
                                                                .activation = "silu",
                                                                .names = deepseek_gguf_names(),
                                                                .pairs = RotaryPairs::kNeighbours,
                                                                .complete = complete_deepseek,
                                                                .rename = rename_deepseek},
                                             .end_pieces = kDeepSeekEndPieces};

constinit const DecoderFamily kDeepSeekV3 = {.model_type = "deepseek_v3",
                                             .read = read_deepseek_v3,
                                             .end_pieces = kDeepSeekEndPieces,
                                             .as_gguf = &kDeepSeekV2};

}  // namespace mulciber
