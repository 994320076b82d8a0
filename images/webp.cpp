// WebP files, decoded by libwebp; images/formats.h declares the reader.
#include "images/formats.h"
#include "mulciber/error.h"

#ifdef MULCIBER_READS_WEBP
#include <webp/decode.h>

#include <algorithm>
#include <string_view>
#endif

namespace mulciber {

#ifndef MULCIBER_READS_WEBP

StoredImage decode_webp(std::span<const std::byte>, const std::string& where) {
  throw ModelError(
      where, "is a WebP file, and this build reads none: MULCIBER_IMAGES",
      "install libwebp-dev and build with -DMULCIBER_IMAGES=ON, or give another format");
}

#else

namespace {

/// The chunk of that name in a RIFF file; empty where it is missing.
std::span<const std::byte> chunk_of(std::span<const std::byte> file, std::string_view name) {
  constexpr size_t kFileHeader = 12, kChunkHeader = 8;
  for (size_t at = kFileHeader; at + kChunkHeader <= file.size();) {
    uint64_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= static_cast<uint64_t>(file[at + 4 + i]) << 8 * i;
    const uint64_t left = file.size() - at - kChunkHeader;
    if (size > left) return {};
    if (std::equal(name.begin(), name.end(), file.begin() + static_cast<std::ptrdiff_t>(at),
                   [](char a, std::byte b) { return static_cast<std::byte>(a) == b; }))
      return file.subspan(at + kChunkHeader, size);
    at += kChunkHeader + size + size % 2;
  }
  return {};
}

}  // namespace

StoredImage decode_webp(std::span<const std::byte> bytes, const std::string& where) {
  const auto refuse = [&](const char* problem) {
    throw ModelError(where, std::string("is a WebP file that cannot be read: ") + problem,
                     "it is damaged or was cut off");
  };
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK)
    refuse("it has no whole header");
  check_image_size(static_cast<uint64_t>(features.width), static_cast<uint64_t>(features.height),
                   where);
  if (features.has_animation)
    throw ModelError(where, "is an animation", "give an image that stands still");
  StoredImage stored = {
      empty_image(static_cast<uint32_t>(features.width), static_cast<uint32_t>(features.height))};
  std::vector<uint8_t>& rgb = stored.image.rgb;
  if (!WebPDecodeRGBInto(data, bytes.size(), rgb.data(), rgb.size(), features.width * 3))
    refuse("its pixels do not decode");
  std::span<const std::byte> exif = chunk_of(bytes, "EXIF");
  constexpr size_t kExifMark = 6;  // some writers add this prefix, which belongs to JPEG
  if (exif.size() > kExifMark && exif[0] == std::byte{'E'}) exif = exif.subspan(kExifMark);
  stored.orientation = exif_orientation(exif);
  return stored;
}

#endif

}  // namespace mulciber
