#include "models/families/decoder_config.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoints/scaled_matrix.h"

namespace mulciber {

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
  decoder.vocabulary = positive("vocab_size", kLargestVocab);
  decoder.context = positive("max_position_embeddings", kMostContext);
  decoder.layers.resize(positive("num_hidden_layers", kMostLayers));
  DecoderAttention& attention = decoder.attention;
  attention.heads = positive("num_attention_heads", kMostHeads);
  attention.kv_heads = static_cast<uint32_t>(
      config.integer_or("num_key_value_heads", attention.heads, 1, attention.heads));
  if (attention.heads % attention.kv_heads != 0)
    config.fail("num_key_value_heads", fmt::format("is {}, which does not divide the {} heads",
                                                   attention.kv_heads, attention.heads));
  if (config.has("head_dim")) {
    attention.head_size = positive("head_dim", kWidest);
  } else {
    if (decoder.width % attention.heads != 0)
      config.fail("num_attention_heads", fmt::format("is {}, which does not divide hidden_size, {}",
                                                     attention.heads, decoder.width));
    attention.head_size = decoder.width / attention.heads;
  }
  if (attention.head_size % 2 != 0)
    config.fail("head_dim",
                fmt::format("is {}; rotary embedding needs pairs", attention.head_size));
  attention.scale = 1 / std::sqrt(static_cast<float>(attention.head_size));
  attention.soft_cap = static_cast<float>(config.number_or("attn_logit_softcapping", 0, 0, 1e9));
  attention.qkv_bias = attention.out_bias = config.boolean_or("attention_bias", false);
  decoder.norms.epsilon = static_cast<float>(config.number_or("rms_norm_eps", 1e-6, 0, 1));
  decoder.feed_forward.hidden = positive("intermediate_size", kWidest);
  decoder.feed_forward.activation =
      read_activation(config, config.has("hidden_act") ? "hidden_act" : "hidden_activation");
  decoder.feed_forward.bias = config.boolean_or("mlp_bias", false);
  decoder.output.tied = config.boolean_or("tie_word_embeddings", false);
  decoder.output.soft_cap =
      static_cast<float>(config.number_or("final_logit_softcapping", 0, 0, 1e9));
  require_absent(config, "use_bidirectional_attention");
  read_quantization(config.json(),
                    config.where());  // throws for unsupported quantization
  return decoder;
}

void use_layer_norms(const ConfigReader& config, const char* key, bool bias,
                     DecoderConfig& decoder) {
  decoder.norms = {.kind = NormKind::kLayer,
                   .bias = bias,
                   .epsilon = static_cast<float>(config.number_or(key, 1e-5, 0, 1))};
}

void read_windows(const ConfigReader& config, DecoderConfig& decoder,
                  bool (*slides)(uint32_t, const ConfigReader&)) {
  // transformers writes null or 0 for no window.
  const int64_t window = config.optional_integer("sliding_window", 0, kMostContext).value_or(0);
  const Json* types = config.find("layer_types");
  if (types && (!types->is_array() || types->size() != decoder.layers.size()))
    config.fail("layer_types", fmt::format("does not list {} layers", decoder.layers.size()));
  for (uint32_t i = 0; i < decoder.layers.size(); ++i) {
    bool sliding = false;
    if (!types) {
      sliding = window > 0 && slides(i, config);
    } else if ((*types)[i] == "sliding_attention") {
      sliding = true;
    } else if ((*types)[i] != "full_attention") {
      config.fail("layer_types", "holds " + printable((*types)[i].dump()) +
                                     "; full_attention and sliding_attention are supported");
    }
    if (!sliding) continue;
    if (window == 0) config.fail("sliding_window", "is missing, but layers slide");
    decoder.layers[i].window = static_cast<uint32_t>(window);
  }
}

void read_one_rope(const ConfigReader& config, DecoderConfig& decoder, double share) {
  decoder.ropes = {read_rope_of(
      config, nullptr,
      {.head_size = decoder.attention.head_size, .context = decoder.context, .share = share})};
}

}  // namespace mulciber
