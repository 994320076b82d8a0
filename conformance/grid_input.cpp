#include "conformance/grid_input.h"

#include <algorithm>
#include <bit>

#include "base/grids.h"
#include "conformance/bounds.h"
#include "conformance/op_case.h"

namespace mulciber::conformance {
namespace {

/// The typical magnitude of a format's entries.
double usual_magnitude(uint32_t format) {
  if (format == GRID_IQ3_S) return 6;
  return format == GRID_IQ3_XXS ? 25 : 18;
}

}  // namespace

std::vector<double> read_grid_row(DataType type, uint64_t columns,
                                  std::span<const uint32_t> words) {
  const uint32_t format = grid_format(type);
  const uint32_t length = GRID_LENGTH(format), entries = 32 / length, high_bits = 8 / entries;
  const uint64_t signs_at = GRID_SIGNS_AT(format, columns),
                 scales_at = GRID_SCALES_AT(format, columns),
                 supers_at = GRID_SUPER_SCALES_AT(format, columns);
  std::vector<double> values(columns);
  for (uint64_t i = 0; i < columns; ++i) {
    const uint64_t group = i / 32, element = i % 32;
    const auto place = static_cast<uint32_t>(element / length);
    const uint32_t byte = group * entries + place, signs = words[signs_at + group];
    uint32_t entry = words[byte / 4] >> (byte % 4 * 8) & 255, scale = signs >> 28;
    bool negative = signs >> element & 1;
    if (const uint32_t bits = GRID_SCALE_BITS(format); bits != 0) {
      const uint32_t stored = words[scales_at + group * bits / 32] >> (group * bits % 32);
      scale = (element < 16 ? stored : stored >> 4) & 15;
      if (bits == 16) entry |= (stored >> (8 + place * high_bits) & ((1u << high_bits) - 1)) << 8;
      if (bits == 8) entry |= (signs >> (28 + place) & 1) << 8;
    }
    if (GRID_PACKS_SIGNS(format)) {
      const uint32_t seven = signs >> (element / 8 * 7) & 127;
      negative = element % 8 < 7 ? seven >> element % 8 & 1 : std::popcount(seven) % 2 == 1;
    }
    const double magnitude = grid_magnitude(format, entry, static_cast<uint32_t>(element % length));
    values[i] = std::bit_cast<float>(words[supers_at + i / 256]) * (2.0 * scale + 1) *
                (negative ? -magnitude : magnitude);
  }
  return values;
}

void draw_grid_row(DataType type, uint64_t columns, double deviation, bool whole,
                   std::span<uint32_t> words, std::mt19937& random) {
  const uint32_t format = grid_format(type);
  const uint64_t signs_at = GRID_SIGNS_AT(format, columns),
                 scales_at = GRID_SCALES_AT(format, columns),
                 supers_at = GRID_SUPER_SCALES_AT(format, columns);
  for (uint64_t i = 0; i < supers_at; ++i) words[i] = random();
  const uint32_t scale_bits = whole ? 1 : 15;  // for whole numbers scales are 1 or 3
  for (uint64_t i = signs_at; i < scales_at && GRID_SCALE_BITS(format) == 0; ++i)
    words[i] &= scale_bits << 28 | 0x0fffffffu;
  const uint32_t nibbles = scale_bits * 0x11;
  for (uint64_t i = scales_at; i < supers_at; ++i) {
    words[i] &=
        GRID_SCALE_BITS(format) == 8 ? nibbles * 0x01010101u : (nibbles | 0xff00u) * 0x00010001u;
  }
  std::uniform_real_distribution<double> factor(0.5, 1.5);
  constexpr double kMiddleScale = 16;
  for (uint64_t i = supers_at; i < supers_at + columns / 256; ++i) {
    const double scale =
        whole ? 1 : deviation / (usual_magnitude(format) * kMiddleScale) * factor(random);
    words[i] = bits_of(static_cast<float>(round_to(DataType::kF16, scale)));
  }
}

}  // namespace mulciber::conformance
