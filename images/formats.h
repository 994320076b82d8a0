// The readers of single formats. What they read are bytes that nobody vouches for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "mulciber/picture.h"

namespace mulciber {

// 2^26 pixels are 192 MiB of bytes; a progressive JPEG takes twice as much again.
constexpr uint64_t kMostPixels = uint64_t{1} << 26;
constexpr uint32_t kMostSide = 65535;

/// A picture as it is stored, and how it is meant to be held.
struct StoredPicture {
  Picture picture;
  uint32_t orientation = 1;  // EXIF's: 1 is upright
};

/// Throws ModelError: `where` has no pixels, or too many.
void check_picture_size(uint64_t width, uint64_t height, const std::string& where);
/// Room for the pixels of a size that was checked.
Picture empty_picture(uint32_t width, uint32_t height);

// Each throws ModelError about `where`.
StoredPicture decode_png(std::span<const std::byte> bytes, const std::string& where);
StoredPicture decode_jpeg(std::span<const std::byte> bytes, const std::string& where);
StoredPicture decode_webp(std::span<const std::byte> bytes, const std::string& where);
StoredPicture decode_pnm(std::span<const std::byte> bytes, const std::string& where);

/// The orientation in EXIF data, a TIFF file; 1 where it says none. Never throws.
uint32_t exif_orientation(std::span<const std::byte> tiff);

}  // namespace mulciber
