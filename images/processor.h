// What preprocessor_config.json says a model's pictures must become.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "checkpoints/model_files.h"
#include "images/resize.h"
#include "mulciber/picture.h"

namespace mulciber {

/// A picture in parts.
struct PictureTiles {
  uint32_t rows = 0, columns = 0;
  std::vector<Picture> pictures;
};

/// What becomes of a channel's bytes before the network: times scale, plus shift.
struct PictureNormalization {
  std::array<float, 4> scale = {1, 1, 1, 1}, shift = {};
  bool operator==(const PictureNormalization&) const = default;
};

/// In place of a processor's sizes: the longer side gets a length (0: it has its own), the picture
/// is stretched to whole tiles, of a square each, and cut into them; or stretched to one where that
/// is not wanted. Idefics3's: Laurençon et al. 2024, arXiv:2408.12637.
struct PictureTiling {
  uint32_t longer_side = 0, side = 0;
  bool splits = true;
};

/// Resized, cut out of their middle, and normalized channel by channel.
struct PictureProcessor {
  struct Size {
    uint32_t width = 0, height = 0;
  };
  /// The picture is stretched to that size; or its shorter side gets that length.
  std::optional<Size> stretched_to;
  std::optional<uint32_t> shorter_side;
  Resampling filter = Resampling::kBilinear;
  std::optional<Size> cropped_to;
  std::optional<PictureTiling> tiling;
  /// A channel's byte times its scale plus its shift is what a model reads.
  std::array<float, 4> scale = {1, 1, 1, 1}, shift = {};

  /// Resized and cut. Throws ModelError where a side would become 0 or above 65535.
  Picture operator()(const Picture& picture) const;
  /// With tiling: its tiles, line by line, then the whole picture in the size of one; or that
  /// alone, of no rows. Otherwise the picture. Throws likewise.
  PictureTiles tiles(const Picture& picture) const;
};

/// Of a model in that folder, by the rules of transformers' classes of the names in it. Throws
/// ModelError where there is no preprocessor_config.json, and no processor_config.json that holds
/// the same, or it asks for what is not known.
PictureProcessor read_picture_processor(const ModelFiles& files,
                                        const std::filesystem::path& folder);

/// Of each pixel a word, whose lowest byte is red.
std::vector<uint32_t> pixel_words(const Picture& picture);

}  // namespace mulciber
