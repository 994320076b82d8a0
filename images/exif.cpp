// The orientation of an image, from its EXIF data: CIPA DC-008-2019, section 4.6.
#include <optional>

#include "images/formats.h"

namespace mulciber {
namespace {

class TiffReader {
 public:
  explicit TiffReader(std::span<const std::byte> bytes) : bytes_(bytes) {
    if (bytes.size() < 8) return;
    little_ = bytes[0] == std::byte{'I'};
  }
  std::optional<uint32_t> number(uint64_t at, uint32_t size) const {
    if (at + size > bytes_.size()) return std::nullopt;
    uint32_t value = 0;
    for (uint32_t i = 0; i < size; ++i) {
      const auto byte = static_cast<uint32_t>(bytes_[at + i]);
      value |= byte << 8 * (little_ ? i : size - 1 - i);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool little_ = false;
};

}  // namespace

uint32_t exif_orientation(std::span<const std::byte> tiff) {
  constexpr uint32_t kOrientation = 0x0112, kEntryBytes = 12;
  const TiffReader reader(tiff);
  const std::optional<uint32_t> directory = reader.number(4, 4);
  if (reader.number(2, 2) != 42 || !directory) return 1;
  const uint32_t entries = reader.number(*directory, 2).value_or(0);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint64_t entry = uint64_t{*directory} + 2 + uint64_t{i} * kEntryBytes;
    const std::optional<uint32_t> tag = reader.number(entry, 2);
    if (!tag) return 1;
    if (*tag != kOrientation) continue;
    const uint32_t value = reader.number(entry + 8, 2).value_or(1);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

}  // namespace mulciber
