#include "models/families/decoder_config.h"

#include <cmath>

#include <fmt/format.h>

namespace mulciber {
namespace {

constexpr const char* kNoPrefix[] = {""};

}  // namespace

const DecoderNames kLlamaNames = {.prefixes = kNoPrefix,
                                  .layer = "model.layers.",
                                  .embedding = "model.embed_tokens",
                                  .positions = nullptr,
                                  .final_norm = "model.norm",
                                  .output = "lm_head",
                                  .attention_norm = "input_layernorm",
                                  .qkv = nullptr,
                                  .q = "self_attn.q_proj",
                                  .k = "self_attn.k_proj",
                                  .v = "self_attn.v_proj",
                                  .q_norm = "self_attn.q_norm",
                                  .k_norm = "self_attn.k_norm",
                                  .attention_out = "self_attn.o_proj",
                                  .after_attention_norm = nullptr,
                                  .feed_forward_norm = "post_attention_layernorm",
                                  .gate = "mlp.gate_proj",
                                  .up = "mlp.up_proj",
                                  .down = "mlp.down_proj",
                                  .after_feed_forward_norm = nullptr};

void require_absent(const ConfigReader& config, const char* key) {
  const Json* found = config.find(key);
  if (!found || (found->is_boolean() && !found->get<bool>()) || (found->is_number() && *found == 0))
    return;
  config.fail(key, "is " + printable(found->dump()) + ", which is not supported");
}

DecoderConfig read_llama_like(const ConfigReader& config) {
  const auto positive = [&](const char* key, int64_t most) {
    return static_cast<uint32_t>(config.integer(key, 1, most));
  };
  DecoderConfig decoder;
  decoder.width = positive("hidden_size", kWidest);
  decoder.hidden = positive("intermediate_size", kWidest);
  decoder.vocabulary = positive("vocab_size", kLargestVocab);
  decoder.max_positions = positive("max_position_embeddings", kMostPositions);
  decoder.layers.resize(positive("num_hidden_layers", kMostLayers));
  decoder.heads = positive("num_attention_heads", kMostHeads);
  decoder.kv_heads = static_cast<uint32_t>(
      config.integer_or("num_key_value_heads", decoder.heads, 1, decoder.heads));
  if (decoder.heads % decoder.kv_heads != 0)
    config.fail("num_key_value_heads", fmt::format("is {}, which does not divide the {} heads",
                                                   decoder.kv_heads, decoder.heads));
  if (config.has("head_dim")) {
    decoder.head_size = positive("head_dim", kWidest);
  } else {
    if (decoder.width % decoder.heads != 0)
      config.fail("num_attention_heads", fmt::format("is {}, which does not divide hidden_size, {}",
                                                     decoder.heads, decoder.width));
    decoder.head_size = decoder.width / decoder.heads;
  }
  if (decoder.head_size % 2 != 0)
    config.fail("head_dim", fmt::format("is {}; rotary embedding needs pairs", decoder.head_size));
  decoder.norm_epsilon = static_cast<float>(config.number_or("rms_norm_eps", 1e-6, 0, 1));
  decoder.activation =
      read_activation(config, config.has("hidden_act") ? "hidden_act" : "hidden_activation");
  decoder.attention_scale = 1 / std::sqrt(static_cast<float>(decoder.head_size));
  decoder.tied_output = config.boolean_or("tie_word_embeddings", false);
  require_absent(config, "mlp_bias");
  require_absent(config, "attn_logit_softcapping");
  require_absent(config, "final_logit_softcapping");
  require_absent(config, "use_bidirectional_attention");
  require_absent(config, "quantization_config");
  return decoder;
}

void read_windows(const ConfigReader& config, DecoderConfig& decoder,
                  bool (*slides)(uint32_t, const ConfigReader&)) {
  const auto window = config.optional_integer("sliding_window", 1, kMostPositions);
  const Json* types = config.find("layer_types");
  if (types && (!types->is_array() || types->size() != decoder.layers.size()))
    config.fail("layer_types", fmt::format("does not list {} layers", decoder.layers.size()));
  for (uint32_t i = 0; i < decoder.layers.size(); ++i) {
    bool sliding = false;
    if (!types) {
      sliding = window && slides(i, config);
    } else if ((*types)[i] == "sliding_attention") {
      sliding = true;
    } else if ((*types)[i] != "full_attention") {
      config.fail("layer_types", "holds " + printable((*types)[i].dump()) +
                                     "; full_attention and sliding_attention are supported");
    }
    if (!sliding) continue;
    if (!window) config.fail("sliding_window", "is missing, but layers slide");
    decoder.layers[i].window = static_cast<uint32_t>(*window);
  }
}

}  // namespace mulciber
