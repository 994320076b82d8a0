#include "models/families/vision_config.h"

#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/families/encoder_config.h"

namespace mulciber {
namespace {

// No known model exceeds these limits; products of them fit in 32 bits.
constexpr std::int64_t kMostImageSide = 16384, kMostImageTokens = 1 << 16;

/// Reads `image_size`: a number, or height and width.
std::pair<uint32_t, uint32_t> read_image_size(const ConfigReader& config) {
  if (const Json* size = config.find("image_size"); size && size->is_array()) {
    const bool whole =
        size->size() == 2 && (*size)[0].is_number_integer() && (*size)[1].is_number_integer();
    if (!whole) config.fail("image_size", "is neither a number nor height and width");
    const auto side = [&](size_t i) {
      const auto pixels = (*size)[i].get<std::int64_t>();
      if (pixels < 1 || pixels > kMostImageSide)
        config.fail("image_size", fmt::format("is {}, not from 1 to {}", pixels, kMostImageSide));
      return static_cast<uint32_t>(pixels);
    };
    return {side(0), side(1)};
  }
  const auto side = static_cast<uint32_t>(config.integer("image_size", 1, kMostImageSide));
  return {side, side};
}

}  // namespace

void read_tower(const ConfigReader& config, TowerConfig& tower) {
  tower.width = static_cast<uint32_t>(config.integer("hidden_size", 2, kWidest));
  tower.heads = static_cast<uint32_t>(config.integer("num_attention_heads", 1, kMostHeads));
  if (tower.width % tower.heads != 0 || tower.width % 2 != 0)
    config.fail("num_attention_heads", fmt::format("is {}, which does not divide hidden_size, {}",
                                                   tower.heads, tower.width));
  tower.layers = static_cast<uint32_t>(config.integer("num_hidden_layers", 1, kMostLayers));
  tower.norm_epsilon =
      static_cast<float>(config.number_or("layer_norm_eps", tower.norm_epsilon, 0, 1));
  if (config.has("hidden_act")) tower.activation = read_activation(config, "hidden_act");
}

void read_vision_tower(const ConfigReader& config, VisionTower& tower) {
  read_tower(config, tower);
  tower.channels = static_cast<uint32_t>(config.integer_or("num_channels", 3, 1, 4));
  std::tie(tower.height, tower.width_pixels) = read_image_size(config);
  tower.patch = static_cast<uint32_t>(config.integer("patch_size", 1, kMostImageSide));
  if (tower.height < tower.patch || tower.width_pixels < tower.patch)
    config.fail("patch_size", fmt::format("is {}, and the image has {} by {} pixels", tower.patch,
                                          tower.width_pixels, tower.height));
  // Pixels beside whole patches are not read, as in a strided convolution.
  tower.height -= tower.height % tower.patch;
  tower.width_pixels -= tower.width_pixels % tower.patch;
  if (tower.tokens() > kMostImageTokens)
    config.fail("patch_size", fmt::format("makes {} patches of an image, above {}", tower.tokens(),
                                          kMostImageTokens));
}

bool is_of_class(const ConfigReader& config, const char* ending) {
  if (!config.has("architectures")) return false;
  for (const Json& name : config.list("architectures"))
    if (name.is_string() && name.get<std::string>().ends_with(ending)) return true;
  return false;
}

void read_vision_labels(const ConfigReader& config, VisionConfig& vision) {
  vision.labels = read_labels(config);
  const std::string problem = config.text_or("problem_type", "");
  if (problem == "regression")
    config.fail("problem_type", "is 'regression'; classifiers of one or several labels are known");
  vision.several_labels = problem == "multi_label_classification" || vision.labels.size() == 1;
}

}  // namespace mulciber
