// What a language model that sees pictures makes of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/families/vision_language_family.h"
#include "models/networks/vision_network.h"

namespace mulciber {

class PictureEmbedder {
 public:
  virtual ~PictureEmbedder() = default;

  /// Embeddings of a picture, or of a tile, of the size that the model takes: (rows, width).
  /// pixels: a word each, whose lowest byte is channel 0. What it gives depends on the pixels
  /// alone. Throws ModelError where there are more or fewer, LogitsError where numbers are not
  /// finite.
  virtual std::vector<float> embed(std::span<const uint32_t> pixels,
                                   const PictureNormalization& normalization) = 0;
};

}  // namespace mulciber
