// Pictures, read from files that nobody vouches for. Errors are the types of mulciber/error.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mulciber/export.h"

namespace mulciber {

/// Pixels of three bytes, red, green and blue, line by line from the top, each from the left.
struct Picture {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgb;  // height * width * 3
};

/// The picture of a PNG, JPEG, WebP or PPM/PGM file (P5, P6): of 16 bits a channel as 8, grey and
/// palettes as colours, without transparency, CMYK as RGB, and turned upright where its EXIF data
/// says so. Throws ModelError naming `where` when the bytes are no such file, end too early, have
/// no pixels or more than 2^26 (65535 a side), or the library of that format is not part of this
/// build. Sizes are checked before anything is allocated for them.
MULCIBER_API Picture decode_picture(std::span<const std::byte> bytes, const std::string& where);
/// The same of a file.
MULCIBER_API Picture read_picture(const std::string& path);

}  // namespace mulciber
