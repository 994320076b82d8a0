#include "models/families/gguf_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "mulciber/error.h"

namespace mulciber {
namespace {

// Keys that would change the results. A value other than 0 is refused unless the family reads the
// key.
constexpr const char* kRefusedGgufKeys[] = {
    "expert_count",    "attention.clamp_kqv", "attention.max_alibi_bias", "logit_scale",
    "embedding_scale", "residual_scale",      "attention.scale"};

// Recommended sampling settings, with their keys in generation_config.json.
struct SamplingKey {
  const char* gguf;
  const char* config;
  bool draws = true;  // the key implies do_sample
};
constexpr SamplingKey kSamplingKeys[] = {{"temp", "temperature"},
                                         {"top_k", "top_k"},
                                         {"top_p", "top_p"},
                                         {"min_p", "min_p"},
                                         {"penalty_repeat", "repetition_penalty", false},
                                         {"penalty_last_n", "penalty_last_n", false}};

Json as_json(const GgufValue& value) {
  return value.is_integer() ? Json(value.integer()) : Json(value.number());
}

void read_gguf_keys(const GgufMetadata& metadata, const GgufFamily& family, Json& config) {
  for (const std::span<const GgufKey> keys : {family.keys, family.more_keys}) {
    for (const GgufKey& key : keys) {
      const GgufValue* value = metadata.find(key.gguf);
      if (!value) continue;
      if (!value->is_number())
        metadata.fail(metadata.full(key.gguf),
                      "is " + value->shown().dump() + "; one number is expected");
      config[key.config] = as_json(*value);
    }
  }
  const auto names = [&](std::span<const GgufKey> keys, const char* refused) {
    return std::ranges::any_of(
        keys, [&](const GgufKey& key) { return std::string_view(key.gguf) == refused; });
  };
  for (const char* refused : kRefusedGgufKeys) {
    const bool known = names(family.keys, refused) || names(family.more_keys, refused);
    if (!known && metadata.number(refused, 0) != 0)
      metadata.fail(metadata.full(refused),
                    "is " + metadata.find(refused)->shown().dump() + ", which is not supported");
  }
}

void read_gguf_heads(const GgufMetadata& metadata, Json& config) {
  const double size = metadata.head_size();
  if (metadata.number("attention.value_length", size) != size)
    metadata.fail(metadata.full("attention.value_length"),
                  "differs from the length of keys, which is not supported");
  const double rotated = metadata.number("rope.dimension_count", size);
  // Overrides the family's default share.
  if (metadata.find("rope.dimension_count") && size > 0)
    config["partial_rotary_factor"] = rotated / size;
  const GgufValue* parallel = metadata.find("use_parallel_residual");
  if (parallel && parallel->type == GgufType::kBool)
    config["use_parallel_residual"] = parallel->boolean();
}

void read_gguf_scaling(const GgufMetadata& metadata, Json& config) {
  const GgufValue* type = metadata.find("rope.scaling.type");
  if (!type) {
    const double scale = metadata.number("rope.scale_linear", 1);
    if (scale != 1) config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", scale}};
    return;
  }
  if (!type->is_text()) metadata.fail(metadata.full("rope.scaling.type"), "is not text");
  if (type->text() == "none") return;
  Json scaling = {{"rope_type", std::string(type->text())}};
  for (const auto& [name, key] :
       {std::pair("factor", "rope.scaling.factor"),
        {"original_max_position_embeddings", "rope.scaling.original_context_length"},
        {"beta_fast", "rope.scaling.yarn_beta_fast"},
        {"beta_slow", "rope.scaling.yarn_beta_slow"}}) {
    if (metadata.find(key)) scaling[name] = metadata.number(key, 0);
  }
  if (metadata.number("rope.scaling.attn_factor", 1) != 1)
    metadata.fail(metadata.full("rope.scaling.attn_factor"), "is not 1, which is not supported");
  config["rope_scaling"] = scaling;
}

/// Reads sampling settings. Files with filters but without a temperature mean transformers'
/// default, 1.
void read_gguf_sampling(const GgufMetadata& metadata, Json& config) {
  bool draws = false;
  for (const SamplingKey& key : kSamplingKeys) {
    const std::string name = std::string("general.sampling.") + key.gguf;
    const GgufValue* value = metadata.file().find_value(name);
    if (!value) continue;
    if (!value->is_number())
      metadata.fail(name, "is " + value->shown().dump() + "; a number is expected");
    config[key.config] = as_json(*value);
    draws = draws || key.draws;
  }
  if (draws) config["do_sample"] = config.value("temperature", 1.0) > 0;
}

}  // namespace

Json gguf_config(const Checkpoint& checkpoint, const GgufFamily& family) {
  const GgufMetadata metadata(checkpoint);
  Json config = {{"model_type", family.architecture}, {family.activation_key, family.activation}};
  read_gguf_keys(metadata, family, config);
  const CheckpointTensor& embedding = checkpoint.at("token_embd.weight");
  if (embedding.shape.size() != 2)
    throw ModelError(checkpoint.path().string(),
                     "tensor 'token_embd.weight' has shape " + embedding.shape_text(), "");
  config["vocab_size"] = static_cast<int64_t>(embedding.shape[0]);
  config["tie_word_embeddings"] = checkpoint.find("output.weight") == nullptr;
  config["attention_bias"] = checkpoint.find("blk.0.attn_q.bias") != nullptr ||
                             checkpoint.find("blk.0.attn_qkv.bias") != nullptr;
  config["mlp_bias"] = checkpoint.find("blk.0.ffn_down.bias") != nullptr;
  // Latent attention has several head sizes, which its family reads.
  if (!metadata.find("attention.kv_lora_rank")) read_gguf_heads(metadata, config);
  read_gguf_scaling(metadata, config);
  read_gguf_sampling(metadata, config);
  for (const auto& [name, id] :
       {std::pair("bos_token_id", "bos"), {"eos_token_id", "eos"}, {"pad_token_id", "padding"}}) {
    const GgufValue* value =
        metadata.file().find_value(std::string("tokenizer.ggml.") + id + "_token_id");
    if (value && value->is_integer()) config[name] = value->integer();
  }
  if (family.complete) family.complete(metadata, config);
  return config;
}

void adapt_to_gguf(DecoderConfig& decoder, const Checkpoint& checkpoint, const GgufFamily& family) {
  decoder.files = {.names = family.names};
  if (family.rename) family.rename(checkpoint, decoder.files.names);
  const GgufMetadata metadata(checkpoint);
  for (RopeConfig& rope : decoder.ropes) {
    rope.pairs = family.pairs;
    const std::vector<double> factors = metadata.factors("rope_freqs.weight", rope.rotated / 2);
    if (!factors.empty()) rope.scaling.frequency_factors = factors;
  }
}

}  // namespace mulciber
