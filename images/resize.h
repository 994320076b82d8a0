// Resizes images like PIL does.
#pragma once

#include "mulciber/image.h"

namespace mulciber {

/// Filters by PIL's numbers, which preprocessor_config.json gives.
enum class Resampling {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5
};

/// Returns `image` in a new size. When it becomes smaller a filter widens with the step, so that
/// every pixel counts (antialiasing). Coefficients are integers with 22 bits after the point and
/// each of the two passes rounds to bytes, like in Pillow, so that results are equal. Throws
/// ModelError when a side is 0 or above 65535.
Image resize(const Image& image, uint32_t width, uint32_t height, Resampling filter);

/// The part of an image that begins at (left, top); pixels outside of the image are black.
Image crop(const Image& image, int64_t left, int64_t top, uint32_t width, uint32_t height);

}  // namespace mulciber
