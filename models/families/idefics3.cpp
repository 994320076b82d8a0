// Idefics3 and SmolVLM: both use one network, SigLIP's tower and Llama.
#include <fmt/format.h>

#include "models/families/vision_family.h"
#include "models/families/vision_language_family.h"

namespace mulciber {
namespace {

constexpr const char* kIdefics3TextPrefixes[] = {"model.text_model."};
constexpr const char* kIdefics3TowerPrefixes[] = {"model.vision_model."};
constexpr const char* kIdefics3ConnectorPrefixes[] = {"model.connector.modality_projection."};

VisionLanguageConfig read_idefics3(const ConfigReader& config) {
  VisionLanguageConfig model;
  model.text = read_text_part(config, kIdefics3TextPrefixes, kNoPrefix);
  VisionTower& tower = model.vision.tower;
  tower = read_part(config, "vision_config",
                    {{"hidden_size", 1152},
                     {"intermediate_size", 3072},
                     {"num_hidden_layers", 12},
                     {"num_attention_heads", 16},
                     {"image_size", 224},
                     {"patch_size", 32},
                     {"hidden_act", "gelu_pytorch_tanh"}},
                    read_siglip_tower);
  tower.names.prefixes = kIdefics3TowerPrefixes;
  tower.names.final_norm = "post_layernorm";
  // A patch gets the position embedding at its fractional coordinates (Dehghani et al. 2023,
  // arXiv:2307.06304). Tiles are full squares, so this is the patch's own position; rounding in
  // transformers can select a neighbour's for some patches of a few sizes (docs/guide/vision.md).
  if (tower.height != tower.width_pixels)
    config.fail("vision_config", "has images that are no squares, which are not supported");
  Connector& connector = model.connector;
  connector = {.prefixes = kIdefics3ConnectorPrefixes, .first = "proj"};
  connector.merged = static_cast<uint32_t>(config.integer_or("scale_factor", 2, 1, 64));
  if (tower.patches_across() % connector.merged != 0)
    config.fail("scale_factor", fmt::format("is {}, which does not divide the {} patches of a side",
                                            connector.merged, tower.patches_across()));
  model.image_token = static_cast<uint32_t>(
      config.integer_or("image_token_id", 128257, 0, std::int64_t{model.text.vocabulary} - 1));
  model.prompt = ImagePrompt::kTiles;
  return model;
}

}  // namespace

constinit const VisionLanguageFamily kIdefics3 = {"idefics3", read_idefics3};
constinit const VisionLanguageFamily kSmolVlm = {"smolvlm", read_idefics3};

}  // namespace mulciber
