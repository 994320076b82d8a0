// The image processing that a model's preprocessor_config.json describes.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "checkpoints/model_files.h"
#include "images/resize.h"
#include "mulciber/image.h"

namespace mulciber {

/// An image in tiles.
struct ImageTiles {
  uint32_t rows = 0, columns = 0;
  std::vector<Image> images;
};

/// Normalization of a channel's bytes before the network: times scale, plus shift.
struct ImageNormalization {
  std::array<float, 4> scale = {1, 1, 1, 1}, shift = {};
  bool operator==(const ImageNormalization&) const = default;
};

/// Replaces a processor's sizes: the longer side is scaled to a length (0: it keeps its own), then
/// the image is stretched to whole square tiles and split into them; without `splits` it is
/// stretched to one tile. This is the processing of Idefics3: Laurençon et al. 2024,
/// arXiv:2408.12637.
struct ImageTiling {
  uint32_t longer_side = 0, side = 0;
  bool splits = true;
};

/// Resizes, crops the middle, and normalizes channel by channel.
struct ImageProcessor {
  struct Size {
    uint32_t width = 0, height = 0;
  };
  /// The image is stretched to this size; or its shorter side is scaled to this length.
  std::optional<Size> stretched_to;
  std::optional<uint32_t> shorter_side;
  Resampling filter = Resampling::kBilinear;
  std::optional<Size> cropped_to;
  std::optional<ImageTiling> tiling;
  /// The model's input is a channel's byte times its scale plus its shift.
  std::array<float, 4> scale = {1, 1, 1, 1}, shift = {};

  /// Resizes and crops. Throws ModelError where a side would become 0 or above 65535.
  Image operator()(const Image& image) const;
  /// With tiling: the image's tiles, line by line, then the whole image in the size of a tile; or
  /// only that, with 0 rows. Without tiling: the image. Throws as operator() does.
  ImageTiles tiles(const Image& image) const;
};

/// Reads the processor of a model in that folder, by the rules of the transformers classes that it
/// names. Throws ModelError where neither preprocessor_config.json nor a processor_config.json with
/// its content exists, or where the processor is unknown.
ImageProcessor read_image_processor(const ModelFiles& files, const std::filesystem::path& folder);

/// One word per pixel, whose lowest byte is red.
std::vector<uint32_t> pixel_words(const Image& image);

}  // namespace mulciber
