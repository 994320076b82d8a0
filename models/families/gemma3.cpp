// Gemma 3: QK-norm, and windows with a RoPE base of their own in five of six layers.
#include <nlohmann/json.hpp>

#include "models/families/gemma.h"

namespace mulciber {
namespace {

// Prefixes of text models, of models with a vision tower before transformers 4.52, and since.
constexpr const char* kGemma3Prefixes[] = {"model.", "language_model.model.",
                                           "model.language_model."};
constexpr const char* kGemma3OutputPrefixes[] = {"", "language_model."};

// Defaults of Gemma3TextConfig, which transformers omits from text_config.
constexpr const char* kGemma3TextDefaults =
    R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
    "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,
    "query_pre_attn_scalar": 256, "sliding_window": 4096, "tie_word_embeddings": true})";

constexpr DecoderNames gemma3_names() {
  DecoderNames names = gemma_names();
  names.prefixes = kGemma3Prefixes;
  names.output_prefixes = kGemma3OutputPrefixes;
  names.layer = "layers.";
  names.embedding = "embed_tokens";
  names.final_norm = "norm";
  return names;
}

/// Reads the rotary embedding of one kind of layer, by new or old keys.
RopeConfig gemma3_rope(const ConfigReader& config, bool sliding, const RopeDefaults& defaults) {
  if (config.has("rope_parameters") || !sliding)
    return read_rope_of(config, sliding ? "sliding_attention" : "full_attention", defaults);
  const Json local = {
      {"rope_theta", config.number_or("rope_local_base_freq", defaults.base, 1e-6, 1e30)}};
  return read_rope(ConfigReader(local, config.where(), config.remedy()), defaults);
}

DecoderConfig read_gemma3(const ConfigReader& config) {
  DecoderConfig decoder = read_gemma(config, gemma3_names());
  decoder.attention.qk_norm = QueryKeyNorm::kPerHead;
  const uint32_t head_size = decoder.attention.head_size;
  decoder.ropes = {gemma3_rope(config, false, {head_size, 1e6, decoder.context}),
                   gemma3_rope(config, true, {head_size, 1e4, decoder.context})};
  // Without layer_types every sixth layer, or the pattern's interval, has full attention.
  read_windows(config, decoder, [](uint32_t layer, const ConfigReader& c) {
    const char* key =
        c.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
    return (layer + 1) % c.integer_or(key, 6, 1, kMostLayers) != 0;
  });
  for (DecoderLayerConfig& layer : decoder.layers) layer.rope = layer.window > 0 ? 1 : 0;
  return decoder;
}

DecoderConfig read_gemma3_with_vision(const ConfigReader& config) {
  Json text = Json::parse(kGemma3TextDefaults);
  config.object("text_config");  // throws unless it is an object
  text.update(config.value("text_config"));
  return read_gemma3(ConfigReader(text, config.where() + ", `text_config`", config.remedy()));
}

void complete_gemma3(const GgufMetadata& metadata, Json& config) {
  complete_gemma(metadata, 62, config);
}

}  // namespace

constinit const DecoderFamily kGemma3 = {.model_type = "gemma3_text",
                                         .read = read_gemma3,
                                         .gguf = GgufFamily{.architecture = "gemma3",
                                                            .activation = "gelu_pytorch_tanh",
                                                            .complete = complete_gemma3},
                                         .end_pieces = kGemmaEndPieces};

constinit const DecoderFamily kGemma3WithVision = {.model_type = "gemma3",
                                                   .read = read_gemma3_with_vision,
                                                   .end_pieces = kGemmaEndPieces,
                                                   .as_gguf = &kGemma3};

}  // namespace mulciber
