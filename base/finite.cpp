#include "base/finite.h"

#include <cstring>

#include "base/blocks.h"
#include "base/grids.h"

namespace mulciber {
namespace {

/// Whether none of the numbers has all bits of its exponent set.
template <typename Word>
bool finite_words(std::span<const std::byte> bytes, Word exponent) {
  for (size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(Word));
    if ((word & exponent) == exponent) return false;
  }
  return true;
}

constexpr uint32_t kExponentF32 = 0x7f800000;
constexpr uint16_t kExponentF16 = 0x7c00, kExponentBf16 = 0x7f80;
constexpr uint8_t kAllOfE4M3 = 0x7f;

bool finite_scales(uint32_t format, uint64_t columns, std::span<const std::byte> row) {
  const uint64_t groups = columns / 32, supers = columns / 256;
  const auto words = [&](uint64_t first, uint64_t bytes) { return row.subspan(4 * first, bytes); };
  const uint64_t scales = BLOCKS_SCALES_AT(format, columns);
  const uint64_t spans = BLOCKS_SPANS(format, columns);
  switch (BLOCKS_SCALES(format)) {
    case BLOCKS_SCALE_BF16: return finite_words(words(scales, 2 * groups), kExponentBf16);
    case BLOCKS_SCALE_F32:
      // The numbers are E4M3, whose NaN has all bits but the sign.
      return finite_words(words(scales, 4 * spans), kExponentF32) &&
             finite_words(words(0, columns), kAllOfE4M3);
    case BLOCKS_ZERO_POINT:  // a half in the lower part of a word
      for (uint64_t i = 0; i < spans; ++i)
        if (!finite_words(words(scales + i, 2), kExponentF16)) return false;
      return true;
    case BLOCKS_SCALE: return finite_words(words(scales, 2 * groups), kExponentF16);
    case BLOCKS_PAIR: return finite_words(words(scales, 4 * groups), kExponentF16);
    case BLOCKS_SUB_PAIR:
    case BLOCKS_SUB_NIBBLES:
      return finite_words(words(BLOCKS_SUPER_SCALES_AT(format, columns), 4 * supers), kExponentF16);
    default:
      return finite_words(words(BLOCKS_SUPER_SCALES_AT(format, columns), 4 * supers), kExponentF32);
  }
}

}  // namespace

bool all_finite(DataType type, uint64_t columns, std::span<const std::byte> rows) {
  if (type == DataType::kF32) return finite_words(rows, kExponentF32);
  if (type == DataType::kF16) return finite_words(rows, kExponentF16);
  if (type == DataType::kBF16) return finite_words(rows, kExponentBf16);
  if (!is_block_type(type)) return true;
  const uint64_t bytes = row_bytes(type, columns);
  for (uint64_t at = 0; at + bytes <= rows.size(); at += bytes) {
    if (is_grid_type(type)) {
      const uint64_t supers = GRID_SUPER_SCALES_AT(block_format(type), columns);
      if (!finite_words(rows.subspan(at + 4 * supers, columns / 64), kExponentF32)) return false;
      continue;
    }
    if (!finite_scales(block_format(type), columns, rows.subspan(at, bytes))) return false;
  }
  return true;
}

}  // namespace mulciber
