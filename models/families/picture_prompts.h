// What becomes of pictures in the prompts of a language model: tiles of pixels, and tokens that
// have their embeddings.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/checkpoint.h"
#include "images/processor.h"
#include "models/families/vision_language_family.h"
#include "mulciber/prompt_pictures.h"
#include "text/tokenizer.h"

namespace mulciber {

/// What a model embeds at once: a picture, or a part of one.
struct PictureTile {
  std::vector<uint8_t> rgb;
  uint64_t hash = 0;  // of these bytes
};

class PreparedPicture {
 public:
  uint32_t rows = 0, columns = 0;  // of tiles, behind which the whole stands; 0: it stands alone
  std::vector<std::shared_ptr<const PictureTile>> tiles;
  uint32_t tile_tokens = 0;
};
using PreparedPictures = std::vector<std::shared_ptr<const PreparedPicture>>;

/// Tokens of a prompt that have a tile's embeddings.
struct PlacedTile {
  uint32_t first = 0, count = 0;
  std::shared_ptr<const PictureTile> tile;
};

/// Thread-safe: it never changes.
class PicturePrompts {
 public:
  /// Throws ModelError where the files of the model disagree about pictures.
  PicturePrompts(const Checkpoint& checkpoint, const VisionLanguageConfig& config,
                 std::shared_ptr<const Tokenizer> tokenizer);

  /// The text that stands for a picture.
  const std::string& placeholder() const { return placeholder_; }
  const PictureNormalization& normalization() const { return normalization_; }

  /// Throws ModelError.
  std::shared_ptr<const PreparedPicture> prepare(const Picture& picture) const;
  /// A prompt with each placeholder written as its picture's tokens are. Pictures of a prompt that
  /// has no placeholder stand before it, a line each. Throws ModelError where there are other
  /// numbers of both.
  std::string expand(const std::string& prompt, const PreparedPictures& pictures) const;
  /// Which of a prompt's ids have whose embeddings. Throws ModelError where there are more or fewer
  /// than the pictures have.
  std::vector<PlacedTile> place(std::span<const int32_t> ids,
                                const PreparedPictures& pictures) const;

 private:
  std::string written(const PreparedPicture& picture) const;

  uint32_t side_height_, side_width_, tile_tokens_;
  int32_t token_;
  PicturePrompt form_;
  std::string placeholder_;
  PictureProcessor processor_;
  PictureNormalization normalization_;
};

}  // namespace mulciber
