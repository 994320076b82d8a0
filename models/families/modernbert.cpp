// ModernBERT: pre-norm, RoPE, gated feed-forward networks, and windows in two of three layers.
#include <nlohmann/json.hpp>

#include "models/families/encoder_family.h"

namespace mulciber {
namespace {

constexpr const char* kModernBertPrefixes[] = {"", "model."};

/// Reads the rotary embedding of one kind of layer, by new or old keys.
RopeConfig modernbert_rope(const ConfigReader& config, const char* kind, const char* older_key,
                           const RopeDefaults& defaults) {
  if (config.has("rope_parameters")) return read_rope_of(config, kind, defaults);
  const Json base = {{"rope_theta", config.number_or(older_key, defaults.base, 1.001, 1e30)}};
  return read_rope(ConfigReader(base, config.where(), config.remedy()), defaults);
}

/// Whether each layer has a window: `layer_types`, or all but every n-th layer.
std::vector<bool> sliding_layers(const ConfigReader& config, size_t count) {
  std::vector<bool> slides(count);
  if (!config.has("layer_types")) {
    const auto every =
        static_cast<size_t>(config.integer_or("global_attn_every_n_layers", 3, 1, kMostLayers));
    for (size_t i = 0; i < count; ++i) slides[i] = i % every != 0;
    return slides;
  }
  const Json& types = config.list("layer_types");
  if (types.size() != count) config.fail("layer_types", "does not list every layer");
  for (size_t i = 0; i < count; ++i) {
    if (types[i] != "full_attention" && types[i] != "sliding_attention")
      config.fail("layer_types", "names a kind of attention that is not known");
    slides[i] = types[i] == "sliding_attention";
  }
  return slides;
}

EncoderConfig read_modernbert(const ConfigReader& config) {
  EncoderConfig encoder = read_bert_like(config);
  encoder.names = {.prefixes = kModernBertPrefixes,
                   .words = "embeddings.tok_embeddings",
                   .embedding_norm = "embeddings.norm",
                   .layer = "layers.",
                   .qkv = "attn.Wqkv",
                   .attention_out = "attn.Wo",
                   .attention_norm = "attn_norm",
                   .gate_up = "mlp.Wi",
                   .down = "mlp.Wo",
                   .feed_forward_norm = "mlp_norm",
                   .final_norm = "final_norm"};
  encoder.embedding.positions = EncoderPositions::kNone;
  encoder.embedding.types = 0;
  encoder.norms = NormPlacement::kBefore;
  encoder.norm_bias = config.boolean_or("norm_bias", false);
  encoder.norm_epsilon = static_cast<float>(config.number_or("norm_eps", 1e-5, 0, 1));
  encoder.attention_bias = config.boolean_or("attention_bias", false);
  encoder.feed_forward_bias = config.boolean_or("mlp_bias", false);
  encoder.activation = config.has("hidden_activation")
                           ? read_activation(config, "hidden_activation")
                           : Activation::kGelu;
  encoder.gated = true;
  const uint32_t head_size = encoder.head_size();
  encoder.ropes = {modernbert_rope(config, "full_attention", "global_rope_theta",
                                   {head_size, 160000, encoder.context}),
                   modernbert_rope(config, "sliding_attention", "local_rope_theta",
                                   {head_size, 10000, encoder.context})};
  // The window covers half of local_attention to each side, and the token itself.
  const auto window =
      static_cast<uint32_t>(config.integer_or("local_attention", 128, 2, kMostContext) / 2 + 1);
  const std::vector<bool> slides = sliding_layers(config, encoder.layers.size());
  for (size_t i = 0; i < slides.size(); ++i) {
    encoder.layers[i].rope = slides[i] ? 1 : 0;
    if (slides[i]) encoder.layers[i].window = window;
  }
  encoder.layers.front().attention_norm = false;
  const std::string pooling = config.text_or("classifier_pooling", "cls");
  if (pooling != "cls" && pooling != "mean")
    config.fail("classifier_pooling", "is '" + printable(pooling) + "'; cls and mean are known");
  encoder.head = {.pooling = pooling == "cls" ? EncoderPooling::kFirst : EncoderPooling::kMean,
                  .dense = "head.dense",
                  .dense_bias = config.boolean_or("classifier_bias", false),
                  .activation = config.has("classifier_activation")
                                    ? read_activation(config, "classifier_activation")
                                    : Activation::kGelu,
                  .norm = "head.norm"};
  return encoder;
}

constexpr GgufKey kModernBertKeys[] = {{"attention.layer_norm_epsilon", "norm_eps"},
                                       {"attention.sliding_window", "local_attention"},
                                       {"rope.freq_base", "global_rope_theta"},
                                       {"rope.freq_base_swa", "local_rope_theta"}};

constexpr EncoderNames modernbert_gguf_names() {
  EncoderNames names = kGgufBertNames;
  names.attention_norm = "attn_norm";
  names.gate_up = "ffn_up";
  names.feed_forward_norm = "ffn_norm";
  names.final_norm = "output_norm";
  return names;
}

/// Completes keys. The pattern of windows is a number, or a boolean for each layer.
void complete_modernbert(const GgufMetadata& metadata, Json& config) {
  if (const GgufValue* act = metadata.find("hidden_activation"); act && act->is_text())
    config["hidden_activation"] = std::string(act->text());
  // llama.cpp's rerankers of this architecture use mean pooling; other files have no such key.
  constexpr double kRank = 4;
  if (metadata.number("pooling_type", 0) == kRank) config["classifier_pooling"] = "mean";
  config["classifier_bias"] = metadata.checkpoint().find("cls.bias") != nullptr;
  const GgufValue* pattern = metadata.find("attention.sliding_window_pattern");
  if (pattern == nullptr) return;
  if (pattern->is_integer()) {
    config["global_attn_every_n_layers"] = pattern->integer();
  } else if (pattern->is_array && pattern->type == GgufType::kBool) {
    for (const std::int64_t slides : pattern->integers())
      config["layer_types"].push_back(slides != 0 ? "sliding_attention" : "full_attention");
  } else {
    metadata.fail(metadata.full("attention.sliding_window_pattern"),
                  "is neither a number nor a boolean for each layer");
  }
}

constexpr EncoderGguf kModernBertGguf = {{.architecture = "modern-bert",
                                          .keys = kBertKeys,
                                          .more_keys = kModernBertKeys,
                                          .activation = "gelu",
                                          .complete = complete_modernbert},
                                         modernbert_gguf_names()};

}  // namespace

constinit const EncoderFamily kModernBert = {"modernbert", read_modernbert, &kModernBertGguf};

}  // namespace mulciber
