// Readers of vision-language configurations, declared in vision_language_family.h.
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "models/families/families.h"
#include "models/families/vision_language_family.h"

namespace mulciber {
namespace {

constexpr std::string_view kWholeModel = "model.", kLayers = "layers.";

/// Defaults that files omit from `text_config`.
Json text_defaults(const std::string& type) {
  if (type == "llama")
    return {{"vocab_size", 32000},        {"hidden_size", 4096},
            {"intermediate_size", 11008}, {"num_hidden_layers", 32},
            {"num_attention_heads", 32},  {"hidden_act", "silu"},
            {"rms_norm_eps", 1e-6},       {"max_position_embeddings", 2048}};
  if (type == "mistral")
    return {{"vocab_size", 32000},        {"hidden_size", 4096},
            {"intermediate_size", 14336}, {"num_hidden_layers", 32},
            {"num_attention_heads", 32},  {"num_key_value_heads", 8},
            {"hidden_act", "silu"},       {"rms_norm_eps", 1e-6},
            {"sliding_window", 4096},     {"max_position_embeddings", 131072}};
  return Json::object();
}

/// A name without the prefix "model.".
const char* within_model(const char* name) {
  return name && std::string_view(name).starts_with(kWholeModel) ? name + kWholeModel.size() : name;
}

DecoderConfig read_text(const ConfigReader& config, const std::string& type) {
  const auto* const found = std::ranges::find_if(
      kDecoderFamilies, [&](const DecoderFamily* one) { return type == one->model_type; });
  if (found == std::end(kDecoderFamilies))
    config.fail("model_type", fmt::format("is '{}', which is no decoder-only family that is known",
                                          printable(type)));
  DecoderConfig text = (*found)->read(config);
  text.end_pieces = (*found)->end_pieces;
  return text;
}

}  // namespace

DecoderConfig read_text_part(const ConfigReader& config, std::span<const char* const> prefixes,
                             std::span<const char* const> output_prefixes) {
  const std::string type = config.object("text_config").text_or("model_type", "llama");
  Json defaults = text_defaults(type);
  const bool tied = config.boolean_or("tie_word_embeddings", false);
  return read_part(config, "text_config", std::move(defaults), [&](const ConfigReader& part) {
    DecoderConfig text = read_text(part, type);
    text.output.tied = text.output.tied || tied;
    DecoderNames& names = text.files.names;
    for (const char** name : {&names.layer, &names.embedding, &names.final_norm, &names.positions})
      *name = within_model(*name);
    names.prefixes = prefixes;
    names.output_prefixes = output_prefixes;
    if (names.layer != kLayers || text.embedding.learned_positions || text.state_space ||
        text.embedding.multiplier != 1)
      part.fail("model_type",
                fmt::format("is '{}', which is not supported beside images", printable(type)));
    text.sees = true;
    return text;
  });
}

VisionLanguageConfig read_vision_language_config(const Checkpoint& checkpoint,
                                                 const VisionLanguageFamily& family) {
  const ConfigReader config(checkpoint.config(), (checkpoint.folder() / "config.json").string());
  VisionLanguageConfig model = family.read(config);
  // The ids are in the whole configuration or in text_config.
  Json with_ids = config.json();
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"})
    if (!config.has(key) && config.json()["text_config"].contains(key))
      with_ids[key] = config.json()["text_config"][key];
  model.text.generation = read_decoder_generation(checkpoint, with_ids, model.text.vocabulary);
  return model;
}

}  // namespace mulciber
