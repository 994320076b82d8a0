// Pixels in memory as images of the library.
#pragma once

#include <fmt/format.h>

#include "capi/structures.h"
#include "mulciber/c/image_encoder.h"
#include "mulciber/image.h"

namespace mulciber::c {

/// Copies the pixels of an image in memory. Throws SettingError for none, or too many.
inline Image image_in_memory(const MulciberImage& image) {
  // The size is checked against the limit before any pixel is read.
  constexpr uint64_t kPixels = 1 << 26;
  const uint64_t pixels = uint64_t{image.width} * image.height;
  if (pixels == 0 || pixels > kPixels)
    throw SettingError("image", fmt::format("has {} x {} pixels", image.width, image.height),
                       fmt::format("give one of 1 to {} pixels", kPixels));
  const uint8_t* rgb = &given_to(image.rgb, "rgb");
  return {image.width, image.height, std::vector<uint8_t>(rgb, rgb + pixels * 3)};
}

}  // namespace mulciber::c
