#include <cmath>

#include <fmt/format.h>

#include "models/families/families.h"

namespace mulciber {
namespace {

constexpr const char* kPrefixes[] = {"transformer.", ""};  // the oldest files have none

constexpr DecoderNames kNames = {.prefixes = kPrefixes,
                                 .layer = "h.",
                                 .embedding = "wte",
                                 .positions = "wpe",
                                 .final_norm = "ln_f",
                                 .output = "lm_head",
                                 .attention_norm = "ln_1",
                                 .qkv = "attn.c_attn",
                                 .q = nullptr,
                                 .k = nullptr,
                                 .v = nullptr,
                                 .q_norm = nullptr,
                                 .k_norm = nullptr,
                                 .attention_out = "attn.c_proj",
                                 .after_attention_norm = nullptr,
                                 .feed_forward_norm = "ln_2",
                                 .gate = nullptr,
                                 .up = "mlp.c_fc",
                                 .down = "mlp.c_proj",
                                 .after_feed_forward_norm = nullptr};

}  // namespace

DecoderConfig read_gpt2(const ConfigReader& config) {
  const auto positive = [&](const char* key, int64_t most) {
    return static_cast<uint32_t>(config.integer(key, 1, most));
  };
  DecoderConfig decoder;
  decoder.names = kNames;
  decoder.width = positive("n_embd", kWidest);
  decoder.hidden = static_cast<uint32_t>(
      config.integer_or("n_inner", 4 * int64_t{decoder.width}, 1, 4 * kWidest));
  decoder.vocabulary = positive("vocab_size", kLargestVocab);
  decoder.max_positions = positive("n_positions", kMostPositions);
  decoder.layers.resize(positive("n_layer", kMostLayers));
  decoder.heads = decoder.kv_heads = positive("n_head", kMostHeads);
  if (decoder.width % decoder.heads != 0)
    config.fail("n_head", fmt::format("is {}, which does not divide n_embd, {}", decoder.heads,
                                      decoder.width));
  decoder.head_size = decoder.width / decoder.heads;
  decoder.norm_epsilon = static_cast<float>(config.number_or("layer_norm_epsilon", 1e-5, 0, 1));
  decoder.activation = read_activation(config, "activation_function");
  decoder.attention_scale = config.boolean_or("scale_attn_weights", true)
                                ? 1 / std::sqrt(static_cast<float>(decoder.head_size))
                                : 1.0f;
  require_absent(config, "scale_attn_by_inverse_layer_idx");
  require_absent(config, "add_cross_attention");
  decoder.rms_norm = decoder.gated = false;
  decoder.qkv_bias = decoder.out_bias = decoder.feed_forward_bias = true;
  decoder.transposed = true;
  decoder.tied_output = config.boolean_or("tie_word_embeddings", true);
  return decoder;
}

}  // namespace mulciber
