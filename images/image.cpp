#include "mulciber/image.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "checkpoints/mapped_file.h"
#include "images/formats.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

bool begins_with(std::span<const std::byte> bytes, std::string_view start) {
  return bytes.size() >= start.size() &&
         std::equal(start.begin(), start.end(), bytes.begin(), [](char a, std::byte b) {
           return static_cast<std::byte>(static_cast<unsigned char>(a)) == b;
         });
}

StoredImage decode_stored(std::span<const std::byte> bytes, const std::string& where) {
  if (begins_with(bytes, "\x89PNG\r\n\x1a\n")) return decode_png(bytes, where);
  if (begins_with(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes, where);
  if (begins_with(bytes, "RIFF") && bytes.size() >= 12 && begins_with(bytes.subspan(8), "WEBP"))
    return decode_webp(bytes, where);
  if (begins_with(bytes, "P5") || begins_with(bytes, "P6")) return decode_pnm(bytes, where);
  throw ModelError(where, "is no image that can be read",
                   "give a PNG, JPEG, WebP or PPM file (P5 or P6)");
}

/// Turns the image upright. Bits of a transformation: mirrored left to right, top to bottom, and
/// (applied first) lines exchanged with columns.
Image upright(Image image, uint32_t orientation) {
  constexpr uint32_t kMirrored = 1, kFlipped = 2, kTransposed = 4;
  constexpr std::array<uint32_t, 9> kSteps = {0,
                                              0,
                                              kMirrored,
                                              kMirrored | kFlipped,
                                              kFlipped,
                                              kTransposed,
                                              kTransposed | kMirrored,
                                              kTransposed | kMirrored | kFlipped,
                                              kTransposed | kFlipped};
  const uint32_t steps = kSteps[orientation];
  if (steps == 0) return image;
  const bool transposed = (steps & kTransposed) != 0;
  Image result =
      transposed ? empty_image(image.height, image.width) : empty_image(image.width, image.height);
  for (uint32_t y = 0; y < result.height; ++y) {
    for (uint32_t x = 0; x < result.width; ++x) {
      const uint32_t to_x = steps & kMirrored ? result.width - 1 - x : x,
                     to_y = steps & kFlipped ? result.height - 1 - y : y;
      const uint32_t from_x = transposed ? to_y : to_x, from_y = transposed ? to_x : to_y;
      std::copy_n(&image.rgb[(uint64_t{from_y} * image.width + from_x) * 3], 3,
                  &result.rgb[(uint64_t{y} * result.width + x) * 3]);
    }
  }
  return result;
}

}  // namespace

void check_image_size(uint64_t width, uint64_t height, const std::string& where) {
  if (width == 0 || height == 0)
    throw ModelError(where, fmt::format("is {} by {} pixels", width, height), "it shows nothing");
  if (width > kMostSide || height > kMostSide || width * height > kMostPixels)
    throw ModelError(where, fmt::format("is {} by {} pixels", width, height),
                     fmt::format("at most {} are read, {} a side", kMostPixels, kMostSide));
}

Image empty_image(uint32_t width, uint32_t height) {
  return {width, height, std::vector<uint8_t>(uint64_t{width} * height * 3)};
}

Image decode_image(std::span<const std::byte> bytes, const std::string& where) {
  StoredImage stored = decode_stored(bytes, where);
  return upright(std::move(stored.image), stored.orientation);
}

Image read_image(const std::string& path) {
  const MappedFile file(path);
  return decode_image(file.bytes(), path);
}

}  // namespace mulciber
