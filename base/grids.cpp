#include "base/grids.h"

#include <bit>
#include <cassert>
#include <cstring>

#include "base/half.h"
#include "shaders/include/grid_tables.h"

namespace mulciber {
namespace {

#define WORDS_OF(AT, WORDS) WORDS,
constexpr uint32_t kIQ2_XXSWords[] = {GRID_IQ2_XXS_PARTS(WORDS_OF)};
constexpr uint32_t kIQ2_XSWords[] = {GRID_IQ2_XS_PARTS(WORDS_OF)};
constexpr uint32_t kIQ2_SWords[] = {GRID_IQ2_S_PARTS(WORDS_OF)};
constexpr uint32_t kIQ3_XXSWords[] = {GRID_IQ3_XXS_PARTS(WORDS_OF)};
constexpr uint32_t kIQ3_SWords[] = {GRID_IQ3_S_PARTS(WORDS_OF)};
#undef WORDS_OF

struct Grid {
  std::span<const uint32_t> words;
  uint32_t block_bytes;
  float scale;  // factor of d, the block's scale
};

// One entry for each type from kIQ2_XXS on, in the order of the enumeration and of the formats,
// which begin at 1.
const Grid kGrids[] = {
    {kIQ2_XXSWords, 66, 0.125f}, {kIQ2_XSWords, 74, 0.125f}, {kIQ2_SWords, 82, 0.125f},
    {kIQ3_XXSWords, 98, 0.25f},  {kIQ3_SWords, 110, 1.0f},
};

const Grid& grid_of(uint32_t format) { return kGrids[format - GRID_IQ2_XXS]; }

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

uint32_t byte_at(const std::byte* at) { return std::to_integer<uint32_t>(*at); }

// The eighth sign makes the count of negative elements even.
uint32_t eight_signs(uint32_t seven) {
  return seven | static_cast<uint32_t>(std::popcount(seven) % 2) << 7;
}

// A word holds four times seven signs, and a scale above them.
void read_packed_signs(uint32_t word, GridGroup& group) {
  for (unsigned i = 0; i < 4; ++i) group.signs |= eight_signs(word >> (7 * i) & 127) << (8 * i);
  group.scales[0] = group.scales[1] = word >> 28;
}

void read_two_scales(const std::byte* at, GridGroup& group) {
  group.scales[0] = byte_at(at) & 15;
  group.scales[1] = byte_at(at) >> 4;
}

}  // namespace

uint32_t grid_format(DataType type) {
  assert(is_grid_type(type));
  return static_cast<uint32_t>(type) - static_cast<uint32_t>(DataType::kIQ2_XXS) + GRID_IQ2_XXS;
}

uint32_t grid_block_bytes(DataType type) { return grid_of(grid_format(type)).block_bytes; }

int grid_magnitude(uint32_t format, uint32_t entry, uint32_t element) {
  const uint32_t bits = grid_of(format).words[entry / 2] >> (entry % 2 * 16);
  if (GRID_LENGTH(format) == 8) {
    constexpr int kMagnitudes[] = {8, 25, 43};
    return kMagnitudes[bits >> (2 * element) & 3];
  }
  const auto code = static_cast<int>(bits >> (3 * element) & 7);
  if (format == GRID_IQ3_S) return 2 * code + 1;
  return code == 7 ? 62 : 8 * code + 4;
}

GridGroup read_grid_group(DataType type, const std::byte* block, uint64_t g) {
  GridGroup group;
  const std::byte* numbers = block + 2;
  switch (type) {
    case DataType::kIQ2_XXS:
      for (unsigned i = 0; i < 4; ++i) group.entries[i] = byte_at(numbers + 8 * g + i);
      read_packed_signs(load<uint32_t>(numbers + 8 * g + 4), group);
      break;
    case DataType::kIQ2_XS:
      for (unsigned i = 0; i < 4; ++i) {
        const uint32_t both = load<uint16_t>(numbers + 8 * g + 2 * i);
        group.entries[i] = both & 511;
        group.signs |= eight_signs(both >> 9) << (8 * i);
      }
      read_two_scales(block + 66 + g, group);
      break;
    case DataType::kIQ2_S:
      for (unsigned i = 0; i < 4; ++i) {
        const uint32_t high = byte_at(block + 66 + g) >> (2 * i) & 3;
        group.entries[i] = byte_at(numbers + 4 * g + i) | high << 8;
      }
      group.signs = load<uint32_t>(block + 34 + 4 * g);
      read_two_scales(block + 74 + g, group);
      break;
    case DataType::kIQ3_XXS:
      for (unsigned i = 0; i < 8; ++i) group.entries[i] = byte_at(numbers + 8 * g + i);
      read_packed_signs(load<uint32_t>(block + 66 + 4 * g), group);
      break;
    default:
      for (unsigned i = 0; i < 8; ++i) {
        const uint32_t high = byte_at(block + 66 + g) >> i & 1;
        group.entries[i] = byte_at(numbers + 8 * g + i) | high << 8;
      }
      group.signs = load<uint32_t>(block + 74 + 4 * g);
      group.scales[0] = group.scales[1] = byte_at(block + 106 + g / 2) >> (g % 2 * 4) & 15;
  }
  return group;
}

float grid_super_scale(DataType type, const std::byte* block) {
  return half_to_float(load<uint16_t>(block)) * grid_of(grid_format(type)).scale;
}

void pack_grids(DataType type, uint64_t columns, std::span<const std::byte> from,
                std::span<std::byte> to) {
  const uint32_t format = grid_format(type);
  const uint64_t block_bytes = grid_block_bytes(type), blocks = columns / 256;
  const uint64_t rows = from.size() / (blocks * block_bytes), stride = row_bytes(type, columns);
  assert(to.size() >= rows * stride);
  std::memset(to.data(), 0, rows * stride);
  const uint32_t entries = 32 / GRID_LENGTH(format), high_bits = 8 / entries;
  for (uint64_t r = 0; r < rows; ++r) {
    auto* row = reinterpret_cast<uint32_t*>(to.data() + r * stride);
    uint32_t* signs = row + GRID_SIGNS_AT(format, columns);
    uint32_t* scales = row + GRID_SCALES_AT(format, columns);
    uint32_t* super_scales = row + GRID_SUPER_SCALES_AT(format, columns);
    for (uint64_t g = 0; g < columns / 32; ++g) {
      const std::byte* block = from.data() + (r * blocks + g / 8) * block_bytes;
      if (g % 8 == 0) super_scales[g / 8] = std::bit_cast<uint32_t>(grid_super_scale(type, block));
      const GridGroup group = read_grid_group(type, block, g % 8);
      uint32_t high = 0;
      for (uint32_t i = 0; i < entries; ++i) {
        row[g * entries / 4 + i / 4] |= (group.entries[i] & 255) << (i % 4 * 8);
        high |= group.entries[i] >> 8 << (i * high_bits);
      }
      const uint32_t bits = GRID_SCALE_BITS(format);
      const uint32_t both = group.scales[0] | group.scales[1] << 4;
      if (bits != 0)
        scales[g * bits / 32] |= (bits == 8 ? both : both | high << 8) << (g * bits % 32);
      if (!GRID_PACKS_SIGNS(format)) {
        signs[g] = group.signs;
        continue;
      }
      for (unsigned i = 0; i < 4; ++i) {
        signs[g] |= (group.signs >> (8 * i) & 127) << (7 * i);
        if (bits == 8) signs[g] |= group.entries[i] >> 8 << (28 + i);
      }
      if (bits == 0) signs[g] |= group.scales[0] << 28;
    }
  }
}

}  // namespace mulciber
