// Language models that see pictures: a vision transformer, a connector that makes embeddings of its
// states, and a decoder-only network that reads these in place of a token's. A record for each
// family.
#pragma once

#include <cstdint>
#include <span>

#include <nlohmann/json.hpp>

#include "models/families/decoder_config.h"
#include "models/families/vision_config.h"

namespace mulciber {

/// From the states of a picture to rows of embeddings.
struct PictureConnector {
  /// The first state stands for the whole picture, and is left out.
  bool skips_first = false;
  /// A square of states, so many a side, becomes one row, line by line: what transformers calls
  /// pixel shuffle, Shi et al. 2016, arXiv:1609.05158, in the other direction.
  uint32_t merged = 1;
  /// Names of the products without ".weight" and ".bias"; the second may be nullptr.
  std::span<const char* const> prefixes;
  const char *first = nullptr, *second = nullptr;
  Activation activation = Activation::kNone;  // between them
  bool bias = false;
};

/// How a picture is written into a prompt.
enum class PicturePrompt {
  kTokens,  // a token for each row
  /// Tiles by rows and columns, then the whole: each behind a token of its own, and line feeds.
  kTiles,
};

struct VisionLanguageConfig {
  DecoderConfig text;
  VisionConfig vision;  // up to the layer whose states are read
  PictureConnector connector;
  uint32_t picture_token = 0;  // stands for a row
  PicturePrompt prompt = PicturePrompt::kTokens;

  /// Rows of a picture, or of a tile.
  uint32_t rows() const {
    const PictureTower& tower = vision.pictures;
    if (connector.merged == 1) return tower.tokens() - (connector.skips_first ? 1 : 0);
    return tower.patches_across() / connector.merged * (tower.patches_down() / connector.merged);
  }
};

struct VisionLanguageFamily {
  const char* model_type;  // of config.json
  /// Without what generation_config.json says. Throws ModelError naming file and key.
  VisionLanguageConfig (*read)(const ConfigReader& config);
};

/// The part that is a decoder-only network, by `text_config` of a configuration, as the family of
/// that name reads it. prefixes: of its tensors, whose names begin with "layers." and the like;
/// output_prefixes: of the output's. Throws ModelError.
DecoderConfig read_text_part(const ConfigReader& config, std::span<const char* const> prefixes,
                             std::span<const char* const> output_prefixes);
/// An object of the configuration as `read` reads it, with what is left out of it filled in.
/// Throws ModelError, also where it is none.
template <typename Read>
auto read_part(const ConfigReader& config, const char* key, Json defaults, const Read& read) {
  config.object(key);
  defaults.update(config.value(key));
  return read(ConfigReader(defaults, config.where() + ": " + key, config.remedy()));
}

/// Liu et al. 2023, arXiv:2304.08485; LLaVA 1.5: arXiv:2310.03744.
extern const VisionLanguageFamily kLlava;
/// Laurençon et al. 2024, arXiv:2408.12637.
extern const VisionLanguageFamily kIdefics3;
/// Marafioti et al. 2025, arXiv:2504.05299: the same network.
extern const VisionLanguageFamily kSmolVlm;

inline constexpr const VisionLanguageFamily* kVisionLanguageFamilies[] = {&kLlava, &kIdefics3,
                                                                          &kSmolVlm};

/// A checkpoint's configuration as its family reads it, with what generation_config.json says.
/// Throws ModelError.
VisionLanguageConfig read_vision_language_config(const Checkpoint& checkpoint,
                                                 const VisionLanguageFamily& family);

}  // namespace mulciber
