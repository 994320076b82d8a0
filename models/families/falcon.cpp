// Falcon: multi-query or grouped attention, parallel sublayers, plain feed-forward networks.
#include <nlohmann/json.hpp>

#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr const char* kFalconPrefixes[] = {"transformer."};

constexpr DecoderNames kFalconNames = {.prefixes = kFalconPrefixes,
                                       .layer = "h.",
                                       .embedding = "word_embeddings",
                                       .final_norm = "ln_f",
                                       .output = "lm_head",
                                       .output_prefixes = kNoPrefix,
                                       .attention_norm = "input_layernorm",
                                       .qkv = "self_attention.query_key_value",
                                       .attention_out = "self_attention.dense",
                                       .feed_forward_norm = "post_attention_layernorm",
                                       .up = "mlp.dense_h_to_4h",
                                       .down = "mlp.dense_4h_to_h"};

/// The largest models of the new architecture have parallel sublayers with a norm each.
void read_falcon_residual(const ConfigReader& config, bool renewed, DecoderConfig& decoder) {
  if (!config.boolean_or("parallel_attn", true)) return;
  const int64_t norms = config.integer_or("num_ln_in_parallel_attn", renewed ? 2 : 1, 1, 2);
  decoder.residual = renewed && norms == 2 ? Residual::kParallel : Residual::kParallelSharedNorm;
  if (decoder.residual != Residual::kParallel) return;
  decoder.files.names.attention_norm = "ln_attn";
  decoder.files.names.feed_forward_norm = "ln_mlp";
}

DecoderConfig read_falcon(const ConfigReader& given) {
  require_absent(given, "alibi");
  const bool renewed = given.boolean_or("new_decoder_architecture", false);
  const bool multi_query = given.boolean_or("multi_query", true);
  Json json = given.json();
  json["hidden_act"] = given.text_or("activation", "gelu");
  const int64_t width = given.integer("hidden_size", 1, kWidest);
  json["intermediate_size"] = given.integer_or("ffn_hidden_size", 4 * width, 1, kWidest);
  json["max_position_embeddings"] =
      given.integer_or("max_position_embeddings", 2048, 1, kMostContext);
  json["tie_word_embeddings"] = given.boolean_or("tie_word_embeddings", true);
  if (renewed) {
    if (given.has("num_kv_heads")) json["num_key_value_heads"] = given.value("num_kv_heads");
  } else if (multi_query) {
    json["num_key_value_heads"] = 1;
  } else {
    json.erase("num_key_value_heads");
  }
  const ConfigReader config(json, given.where(), given.remedy());
  DecoderConfig decoder = read_llama_like(config);
  // With one key head both orders of rows are equal: queries, key, value.
  decoder.files = {.names = kFalconNames, .qkv_grouped = renewed || !multi_query};
  use_layer_norms(config, "layer_norm_epsilon", true, decoder);
  read_falcon_residual(config, renewed, decoder);
  const bool bias = config.boolean_or("bias", false);
  decoder.attention.qkv_bias = decoder.attention.out_bias = bias;
  read_one_rope(config, decoder);
  decoder.feed_forward.kind = FeedForwardKind::kPlain;
  decoder.feed_forward.bias = bias;
  return decoder;
}

constexpr GgufKey kFalconGgufKeys[] = {epsilon_key("layer_norm_epsilon")};

// This tensor exists only in models with two norms; no key tells them apart.
constexpr const char* kFalconAttentionNorm = "blk.0.attn_norm_2.weight";

void complete_falcon(const GgufMetadata& metadata, Json& config) {
  const bool two_norms = metadata.checkpoint().find(kFalconAttentionNorm) != nullptr;
  config["new_decoder_architecture"] = true;
  config["num_ln_in_parallel_attn"] = two_norms ? 2 : 1;
  config["num_kv_heads"] = config.value("num_key_value_heads", int64_t{1});
  config["ffn_hidden_size"] = config.value("intermediate_size", int64_t{0});
}

void rename_falcon(const Checkpoint& checkpoint, DecoderNames& names) {
  if (!checkpoint.find(kFalconAttentionNorm)) return;
  names.attention_norm = "attn_norm_2";
  names.feed_forward_norm = "attn_norm";
}

constexpr const char* kFalconEndPieces[] = {"<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kFalcon = {.model_type = "falcon",
                                         .read = read_falcon,
                                         .gguf = GgufFamily{.architecture = "falcon",
                                                            .more_keys = kFalconGgufKeys,
                                                            .activation_key = "activation",
                                                            .activation = "gelu",
                                                            .names = kFusedGgufNames,
                                                            .complete = complete_falcon,
                                                            .rename = rename_falcon},
                                         .end_pieces = kFalconEndPieces};

}  // namespace mulciber
