#include <cmath>
#include <nlohmann/json.hpp>

#include "models/families/families.h"

namespace mulciber {
namespace {

// Alone; then with a vision tower, as before transformers 4.52 and since.
constexpr const char* kPrefixes[] = {"model.", "language_model.model.", "model.language_model."};
constexpr const char* kOutputPrefixes[] = {"", "language_model."};

// What transformers leaves out of text_config, because it is the same as its Gemma3TextConfig would
// be without.
constexpr const char* kTextDefaults =
    R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
    "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131072, "rms_norm_eps": 1e-6,
    "query_pre_attn_scalar": 256, "sliding_window": 4096, "tie_word_embeddings": true})";

constexpr DecoderNames names() {
  DecoderNames names = kLlamaNames;
  names.prefixes = kPrefixes;
  names.output_prefixes = kOutputPrefixes;
  names.layer = "layers.";
  names.embedding = "embed_tokens";
  names.final_norm = "norm";
  names.after_attention_norm = "post_attention_layernorm";
  names.feed_forward_norm = "pre_feedforward_layernorm";
  names.after_feed_forward_norm = "post_feedforward_layernorm";
  return names;
}

/// Rotary base of one kind of layer, in whichever place the file has it.
RopeConfig rope(const ConfigReader& config, bool sliding, const RopeDefaults& defaults) {
  if (config.has("rope_parameters") || !sliding)
    return read_rope_of(config, sliding ? "sliding_attention" : "full_attention", defaults);
  const Json local = {
      {"rope_theta", config.number_or("rope_local_base_freq", defaults.base, 1e-6, 1e30)}};
  return read_rope(ConfigReader(local, config.where(), config.remedy()), defaults);
}

DecoderConfig read(const ConfigReader& config) {
  DecoderConfig decoder = read_llama_like(config);
  decoder.files = {.names = names(), .gains = SourceForm::kPlusOne};
  // transformers rounds the factor to the type of the embeddings, which for bfloat16 files changes
  // it.
  decoder.embedding.multiplier = std::sqrt(static_cast<float>(decoder.width));
  decoder.norms.place = NormPlace::kBoth;
  decoder.attention.scale =
      static_cast<float>(1 / std::sqrt(config.number_or("query_pre_attn_scalar", 256, 1e-6, 1e9)));
  decoder.attention.qk_norm = QueryKeyNorm::kPerHead;
  decoder.output.tied = config.boolean_or("tie_word_embeddings", true);
  const uint32_t head_size = decoder.attention.head_size;
  decoder.ropes = {rope(config, false, {head_size, 1e6, decoder.context}),
                   rope(config, true, {head_size, 1e4, decoder.context})};
  // Without layer_types every sixth layer (or as the pattern says) sees everything.
  read_windows(config, decoder, [](uint32_t layer, const ConfigReader& c) {
    const char* key =
        c.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
    return (layer + 1) % c.integer_or(key, 6, 1, kMostLayers) != 0;
  });
  for (DecoderLayerConfig& layer : decoder.layers) layer.rope = layer.window > 0 ? 1 : 0;
  return decoder;
}

DecoderConfig read_with_vision(const ConfigReader& config) {
  Json text = Json::parse(kTextDefaults);
  config.object("text_config");  // throws where it is none
  text.update(config.value("text_config"));
  return read(ConfigReader(text, config.where() + ", `text_config`", config.remedy()));
}

/// llama.cpp scales by the size of a head but in the 27B model, whose files do not say so either.
void complete(const GgufMetadata& metadata, Json& config) {
  const bool largest = metadata.number("block_count", 0) == 62;
  config["query_pre_attn_scalar"] =
      largest ? metadata.number("embedding_length", 0) / metadata.number("attention.head_count", 0)
              : metadata.head_size();
}

constexpr const char* kEndPieces[] = {"<end_of_turn>"};

}  // namespace

constinit const DecoderFamily kGemma3 = {.model_type = "gemma3_text",
                                         .read = read,
                                         .gguf = GgufFamily{.architecture = "gemma3",
                                                            .activation = "gelu_pytorch_tanh",
                                                            .complete = complete},
                                         .end_pieces = kEndPieces};

constinit const DecoderFamily kGemma3WithVision = {
    .model_type = "gemma3", .read = read_with_vision, .end_pieces = kEndPieces};

}  // namespace mulciber
