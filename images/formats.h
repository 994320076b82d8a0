// Readers of single formats. They read untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "mulciber/image.h"

namespace mulciber {

// 2^26 pixels are 192 MiB of bytes; a progressive JPEG takes another two times that.
constexpr uint64_t kMostPixels = uint64_t{1} << 26;
constexpr uint32_t kMostSide = 65535;

/// An image as it is stored, and its orientation.
struct StoredImage {
  Image image;
  uint32_t orientation = 1;  // EXIF's: 1 is upright
};

/// Throws ModelError about `where` for a size without pixels or with too many.
void check_image_size(uint64_t width, uint64_t height, const std::string& where);
/// An image with room for the pixels of a checked size.
Image empty_image(uint32_t width, uint32_t height);

// Each throws ModelError about `where`.
StoredImage decode_png(std::span<const std::byte> bytes, const std::string& where);
StoredImage decode_jpeg(std::span<const std::byte> bytes, const std::string& where);
StoredImage decode_webp(std::span<const std::byte> bytes, const std::string& where);
StoredImage decode_pnm(std::span<const std::byte> bytes, const std::string& where);

/// The orientation in EXIF data, a TIFF file; 1 where it has none. Never throws.
uint32_t exif_orientation(std::span<const std::byte> tiff);

}  // namespace mulciber
