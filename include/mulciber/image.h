// Images, decoded from untrusted files. Errors are the types of mulciber/error.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mulciber/export.h"

namespace mulciber {

/// RGB pixels of three bytes, row by row from the top, each row from the left.
struct Image {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgb;  // height * width * 3
};

/// Decodes a PNG, JPEG, WebP or PPM/PGM file (P5, P6). 16-bit channels become 8-bit; grey, palette
/// and CMYK images become RGB; alpha is dropped; the EXIF orientation is applied. Throws ModelError
/// naming `where` when the bytes are no such file, end too early, have no pixels or more than 2^26
/// (65535 a side), or when this build lacks the library of that format. Sizes are checked before
/// memory is allocated for them.
MULCIBER_API Image decode_image(std::span<const std::byte> bytes, const std::string& where);
/// Decodes the image in a file. Throws as decode_image().
MULCIBER_API Image read_image(const std::string& path);

// Deprecated names of version 0.1.
using Picture [[deprecated("use Image")]] = Image;
[[deprecated("use decode_image")]] inline Image decode_picture(std::span<const std::byte> bytes,
                                                               const std::string& where) {
  return decode_image(bytes, where);
}
[[deprecated("use read_image")]] inline Image read_picture(const std::string& path) {
  return read_image(path);
}

}  // namespace mulciber
