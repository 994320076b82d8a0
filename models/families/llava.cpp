// LLaVA: a CLIP or SigLIP tower, two projections, and a decoder that text_config names.
#include <fmt/format.h>

#include "models/families/vision_family.h"
#include "models/families/vision_language_family.h"

namespace mulciber {
namespace {

// Prefixes since transformers 4.52, and before. Towers of transformers 5 have no prefix of their
// own model.
constexpr const char* kLlavaTextPrefixes[] = {"model.language_model.", "language_model.model."};
constexpr const char* kLlavaOutputPrefixes[] = {"", "language_model."};
constexpr const char* kLlavaTowerPrefixes[] = {"model.vision_tower.vision_model.",
                                               "vision_tower.vision_model.", "model.vision_tower.",
                                               "vision_tower."};
constexpr const char* kLlavaProjectorPrefixes[] = {"model.multi_modal_projector.",
                                                   "multi_modal_projector."};

VisionTower read_llava_tower(const ConfigReader& config) {
  const std::string type = config.text("model_type");
  if (type != "clip_vision_model" && type != "siglip_vision_model")
    config.fail("model_type",
                fmt::format("is '{}'; 'clip_vision_model' and 'siglip_vision_model' are known",
                            printable(type)));
  VisionTower tower =
      type == "clip_vision_model" ? read_clip_tower(config) : read_siglip_tower(config);
  tower.names.prefixes = kLlavaTowerPrefixes;
  return tower;
}

/// Number of layers before the hidden states that the connector reads.
uint32_t layers_read(const ConfigReader& config, uint32_t layers) {
  constexpr const char* kKey = "vision_feature_layer";
  if (const Json* given = config.find(kKey); given && !given->is_number_integer())
    config.fail(kKey, "is " + printable(given->dump()) + "; one layer is supported");
  const auto most = static_cast<std::int64_t>(layers);
  const std::int64_t layer = config.integer_or(kKey, -2, -most, most);
  const std::int64_t read = layer < 0 ? most + 1 + layer : layer;
  if (read == 0) config.fail(kKey, "is that before the first layer, which is not supported");
  return static_cast<uint32_t>(read);
}

VisionLanguageConfig read_llava(const ConfigReader& config) {
  VisionLanguageConfig model;
  model.text = read_text_part(config, kLlavaTextPrefixes, kLlavaOutputPrefixes);
  VisionTower& tower = model.vision.tower;
  tower = read_part(config, "vision_config",
                    {{"model_type", "clip_vision_model"},
                     {"hidden_size", 1024},
                     {"intermediate_size", 4096},
                     {"num_hidden_layers", 24},
                     {"num_attention_heads", 16},
                     {"image_size", 336},
                     {"patch_size", 14},
                     {"hidden_act", "quick_gelu"}},
                    read_llava_tower);
  tower.layers = layers_read(config, tower.layers);
  const std::string strategy = config.text_or("vision_feature_select_strategy", "default");
  if (strategy != "default" && strategy != "full")
    config.fail("vision_feature_select_strategy",
                fmt::format("is '{}'; 'default' and 'full' are known", printable(strategy)));
  Connector& connector = model.connector;
  connector = {.skips_first = strategy == "default",
               .prefixes = kLlavaProjectorPrefixes,
               .first = "linear_1",
               .second = "linear_2",
               .activation = Activation::kGelu,
               .bias = config.boolean_or("multimodal_projector_bias", true)};
  if (config.has("projector_hidden_act"))
    connector.activation = read_activation(config, "projector_hidden_act");
  if (model.rows() == 0) config.fail("vision_feature_select_strategy", "leaves no state");
  model.image_token = static_cast<uint32_t>(
      config.has("image_token_id")
          ? config.integer("image_token_id", 0, std::int64_t{model.text.vocabulary} - 1)
          : config.integer_or("image_token_index", 32000, 0,
                              std::int64_t{model.text.vocabulary} - 1));
  return model;
}

}  // namespace

constinit const VisionLanguageFamily kLlava = {"llava", read_llava};

}  // namespace mulciber
