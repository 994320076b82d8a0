// Images in prompts of a vision-language model: tiles of pixels, and the tokens that their
// embeddings replace.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/checkpoint.h"
#include "images/processor.h"
#include "models/families/vision_language_family.h"
#include "mulciber/prompt_images.h"
#include "text/tokenizer.h"

namespace mulciber {

/// Pixels that a model embeds at once: an image, or a tile of it.
struct ImageTile {
  std::vector<uint8_t> rgb;
  uint64_t hash = 0;  // hash of rgb
};

class PreparedImage {
 public:
  uint32_t rows = 0, columns = 0;  // the tiles, which precede the whole image; 0: none
  std::vector<std::shared_ptr<const ImageTile>> tiles;
  uint32_t tile_tokens = 0;
};
using PreparedImages = std::vector<std::shared_ptr<const PreparedImage>>;

/// Tokens of a prompt that a tile's embeddings replace.
struct PlacedTile {
  uint32_t first = 0, count = 0;
  std::shared_ptr<const ImageTile> tile;
};

/// Prepares images and prompts of one model. Thread-safe, because it is immutable.
class ImagePrompts {
 public:
  /// Throws ModelError when the model's files disagree about images.
  ImagePrompts(const Checkpoint& checkpoint, const VisionLanguageConfig& config,
               std::shared_ptr<const Tokenizer> tokenizer);

  /// The placeholder of an image in a prompt.
  const std::string& placeholder() const { return placeholder_; }
  const ImageNormalization& normalization() const { return normalization_; }

  /// Resizes and tiles an image. Throws ModelError when the model cannot take it.
  std::shared_ptr<const PreparedImage> prepare(const Image& image) const;
  /// Replaces each placeholder with the tokens of its image. Without placeholders the images come
  /// first, one a line. Throws ModelError when the numbers of placeholders and images differ.
  std::string expand(const std::string& prompt, const PreparedImages& images) const;
  /// Finds the tokens of each tile in a prompt. Throws ModelError when their number differs from
  /// that of the images, or the tokens of a tile are not contiguous.
  std::vector<PlacedTile> place(std::span<const int32_t> ids, const PreparedImages& images) const;

 private:
  std::string written(const PreparedImage& image) const;

  uint32_t side_height_, side_width_, tile_tokens_;
  int32_t token_;
  ImagePrompt form_;
  std::string placeholder_;
  ImageProcessor processor_;
  ImageNormalization normalization_;
};

}  // namespace mulciber
