// Vision-language models: a vision transformer, a connector that projects its hidden states to
// embeddings, and a decoder-only network that reads them in place of token embeddings. Each family
// has one record.
#pragma once

#include <cstdint>
#include <span>

#include <nlohmann/json.hpp>

#include "models/families/decoder_config.h"
#include "models/families/vision_config.h"

namespace mulciber {

/// The projection of an image's hidden states to rows of embeddings.
struct Connector {
  /// The first state, the class token's, is left out.
  bool skips_first = false;
  /// Each square of merged * merged states is concatenated, row by row, to one wider row: the
  /// inverse of pixel shuffle, Shi et al. 2016, arXiv:1609.05158, and called so in transformers.
  uint32_t merged = 1;
  /// Names of the projections without ".weight" and ".bias"; the second may be nullptr.
  std::span<const char* const> prefixes;
  const char *first = nullptr, *second = nullptr;
  Activation activation = Activation::kNone;  // between the two projections
  bool bias = false;
};

/// How an image appears in a prompt.
enum class ImagePrompt {
  kTokens,  // one token for each row of embeddings
  /// The tiles row by row, then the whole image; tokens before each, and line feeds between rows.
  kTiles,
};

struct VisionLanguageConfig {
  DecoderConfig text;
  VisionConfig vision;  // up to the layer whose states the connector reads
  Connector connector;
  uint32_t image_token = 0;  // placeholder of one row of embeddings
  ImagePrompt prompt = ImagePrompt::kTokens;

  /// Rows of embeddings of an image, or of a tile.
  uint32_t rows() const {
    const VisionTower& tower = vision.tower;
    if (connector.merged == 1) return tower.tokens() - (connector.skips_first ? 1 : 0);
    return tower.patches_across() / connector.merged * (tower.patches_down() / connector.merged);
  }
};

struct VisionLanguageFamily {
  const char* model_type;  // `model_type` of config.json
  /// Reads config.json, but not generation_config.json. Throws ModelError naming file and key.
  VisionLanguageConfig (*read)(const ConfigReader& config);
};

/// Reads the decoder-only part, `text_config`, by the family that it names. prefixes: prefixes of
/// its tensors, before "layers." and similar names; output_prefixes: prefixes of the output's.
/// Throws ModelError.
DecoderConfig read_text_part(const ConfigReader& config, std::span<const char* const> prefixes,
                             std::span<const char* const> output_prefixes);
/// Reads an object of the configuration with `read`, after adding defaults. Throws ModelError, also
/// when the key is not an object.
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

/// Reads a checkpoint's configuration and generation_config.json. Throws ModelError.
VisionLanguageConfig read_vision_language_config(const Checkpoint& checkpoint,
                                                 const VisionLanguageFamily& family);

}  // namespace mulciber
