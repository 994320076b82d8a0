// Resizing pictures as PIL does.
#pragma once

#include "mulciber/picture.h"

namespace mulciber {

/// By the numbers of PIL, which preprocessor_config.json gives.
enum class Resampling {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5
};

/// `picture` in that size. Where it becomes smaller a filter widens with the step, so that every
/// pixel counts (antialiasing). Coefficients are whole numbers of 22 bits behind the point and each
/// of the two passes rounds to bytes, as in Pillow, so that results are equal. Throws ModelError
/// when a side is 0 or above 65535.
Picture resize(const Picture& picture, uint32_t width, uint32_t height, Resampling filter);

/// The part of a picture that begins at (left, top), which may lie outside of it: black is there.
Picture crop(const Picture& picture, int64_t left, int64_t top, uint32_t width, uint32_t height);

}  // namespace mulciber
