// PPM and PGM, P6 and P5. The library for them, stb_image, is not used: it gives the low bytes of
// 16-bit files and leaves maximum values other than 255 unscaled.
#include <algorithm>
#include <optional>

#include "images/formats.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

/// Reads the numbers of a header, with blanks and comments between them.
class PnmHeader {
 public:
  PnmHeader(std::span<const std::byte> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {}

  uint64_t number() {
    std::optional<int> found = next();
    while (found && (blank(*found) || *found == '#')) {
      if (*found == '#')
        while (found && *found != '\n') found = next();
      found = next();
    }
    uint64_t value = 0;
    bool any = false;
    for (; found && *found >= '0' && *found <= '9' && value < 1'000'000'000; found = next()) {
      value = value * 10 + static_cast<uint64_t>(*found - '0');
      any = true;
    }
    // One blank ends a number; after the last one the pixels begin.
    if (!any || !found || !blank(*found))
      throw ModelError(where_, "has no header of width, height and largest value", "");
    return value;
  }
  std::span<const std::byte> rest() const { return bytes_.subspan(at_); }

 private:
  std::optional<int> next() {
    if (at_ == bytes_.size()) return std::nullopt;
    return static_cast<int>(bytes_[at_++]);
  }
  static bool blank(int byte) { return byte == ' ' || (byte >= 9 && byte <= 13); }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  size_t at_ = 2;
};

}  // namespace

StoredImage decode_pnm(std::span<const std::byte> bytes, const std::string& where) {
  PnmHeader header(bytes, where);
  const uint64_t width = header.number(), height = header.number(), largest = header.number();
  check_image_size(width, height, where);
  if (largest < 1 || largest > 65535)
    throw ModelError(where, "has a largest value that is not from 1 to 65535", "");
  const uint64_t channels = bytes[1] == std::byte{'6'} ? 3 : 1, size = largest > 255 ? 2 : 1;
  const std::span<const std::byte> pixels = header.rest();
  if (pixels.size() < width * height * channels * size)
    throw ModelError(where, "ends before its pixels do", "it was cut off");
  Image image = empty_image(static_cast<uint32_t>(width), static_cast<uint32_t>(height));
  for (uint64_t i = 0; i < width * height; ++i) {
    for (uint64_t channel = 0; channel < 3; ++channel) {
      const uint64_t from = (i * channels + std::min(channel, channels - 1)) * size;
      uint64_t value = static_cast<uint64_t>(pixels[from]);
      if (size == 2) value = value << 8 | static_cast<uint64_t>(pixels[from + 1]);
      image.rgb[i * 3 + channel] =
          static_cast<uint8_t>((std::min(value, largest) * 255 + largest / 2) / largest);
    }
  }
  return {std::move(image)};
}

}  // namespace mulciber
