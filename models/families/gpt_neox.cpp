// GPT-NeoX and Pythia: parallel sublayers with a layer norm each, and partial RoPE.
#include <nlohmann/json.hpp>

#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr const char* kGptNeoXPrefixes[] = {"gpt_neox."};

constexpr DecoderNames kGptNeoXNames = {.prefixes = kGptNeoXPrefixes,
                                        .layer = "layers.",
                                        .embedding = "embed_in",
                                        .final_norm = "final_layer_norm",
                                        .output = "embed_out",
                                        .output_prefixes = kNoPrefix,
                                        .attention_norm = "input_layernorm",
                                        .qkv = "attention.query_key_value",
                                        .attention_out = "attention.dense",
                                        .feed_forward_norm = "post_attention_layernorm",
                                        .up = "mlp.dense_h_to_4h",
                                        .down = "mlp.dense_4h_to_h"};

DecoderConfig read_gpt_neox(const ConfigReader& given) {
  // Rotary embeddings had other keys before transformers 5.
  Json json = given.json();
  if (!given.has("rope_parameters")) {
    json["partial_rotary_factor"] = given.number_or("rotary_pct", 0.25, 0, 1);
    if (given.has("rotary_emb_base")) json["rope_theta"] = given.value("rotary_emb_base");
  }
  const ConfigReader config(json, given.where(), given.remedy());
  DecoderConfig decoder = read_llama_like(config);
  decoder.files = {.names = kGptNeoXNames, .qkv_grouped = true};
  use_layer_norms(config, "layer_norm_eps", true, decoder);
  if (config.boolean_or("use_parallel_residual", true)) decoder.residual = Residual::kParallel;
  decoder.attention.qkv_bias = decoder.attention.out_bias =
      config.boolean_or("attention_bias", true);
  read_one_rope(config, decoder, 0.25);
  decoder.feed_forward.kind = FeedForwardKind::kPlain;
  decoder.feed_forward.bias = true;
  return decoder;
}

constexpr GgufKey kGptNeoXGgufKeys[] = {epsilon_key("layer_norm_eps")};

/// The converter reorders rows: all queries, all keys, all values.
constexpr DecoderNames gpt_neox_gguf_names() { return kFusedGgufNames; }

void complete_gpt_neox(const GgufMetadata&, Json& config) {
  config["rotary_pct"] = config.value("partial_rotary_factor", 1.0);
  if (config.contains("rope_theta")) config["rotary_emb_base"] = config["rope_theta"];
}

constexpr const char* kGptNeoXEndPieces[] = {"<|endoftext|>"};

}  // namespace

constinit const DecoderFamily kGptNeoX = {.model_type = "gpt_neox",
                                          .read = read_gpt_neox,
                                          .gguf = GgufFamily{.architecture = "gptneox",
                                                             .more_keys = kGptNeoXGgufKeys,
                                                             .activation = "gelu",
                                                             .names = gpt_neox_gguf_names(),
                                                             .complete = complete_gpt_neox},
                                          .end_pieces = kGptNeoXEndPieces};

}  // namespace mulciber
