// Image embeddings for a language model that sees images.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/families/vision_language_family.h"
#include "models/networks/vision_network.h"

namespace mulciber {

class ImageEmbedder {
 public:
  virtual ~ImageEmbedder() = default;

  /// Embeddings of an image, or of a tile, in the size that the model takes: (rows, width). pixels:
  /// one word each, whose lowest byte is channel 0. The result depends on the pixels alone. Throws
  /// ModelError for more or fewer pixels than the model takes, LogitsError where embeddings are not
  /// finite.
  virtual std::vector<float> embed(std::span<const uint32_t> pixels,
                                   const ImageNormalization& normalization) = 0;
};

}  // namespace mulciber
