#include "base/blocks.h"

#include <cassert>
#include <cstring>

#include "base/grids.h"
#include "base/half.h"

namespace mulciber {
namespace {

using Word = uint32_t;

/// Where each run of values or scales of one row of the layout begins.
struct Row {
  Word *values, *high, *super_scales;
  uint16_t* block_scales;
  Word* pairs;  // block scales of 32 bits
};

unsigned byte_at(const std::byte* at) { return std::to_integer<unsigned>(*at); }

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// Sixteen bytes whose low nibbles are the first 16 elements and whose high nibbles are the other
// 16, in the file and in the layout alike.
void pack_nibbles(const std::byte* from, Word* to) { std::memcpy(to, from, 16); }

// The bit of element 4 t + j goes to bit 8 j + t: the bits of four neighbours lie in four bytes.
Word spread_bits(Word bits) {
  Word word = 0;
  for (unsigned i = 0; i < 32; ++i) word |= (bits >> i & 1) << (8 * (i % 4) + i / 4);
  return word;
}

// Packs 32 elements of six bits each into nibbles and into words of high bits: those of element i
// of 16 begin at bit 8 (i % 4) + 2 (i / 4).
void pack_six_bits(const unsigned* six, Word* values, Word* high) {
  for (unsigned i = 0; i < 4; ++i) values[i] = 0;
  high[0] = high[1] = 0;
  for (unsigned i = 0; i < 16; ++i) {
    values[i / 4] |= ((six[i] & 15) | (six[i + 16] & 15) << 4) << (8 * (i % 4));
    const unsigned shift = 8 * (i % 4) + 2 * (i / 4);
    high[0] |= six[i] >> 4 << shift;
    high[1] |= six[i + 16] >> 4 << shift;
  }
}

// Blocks of 32; `g` counts them along the row.

void pack_q8_0(const std::byte* block, uint64_t g, const Row& row) {
  row.block_scales[g] = load<uint16_t>(block);
  for (unsigned i = 0; i < 8; ++i)
    row.values[8 * g + i] = load<Word>(block + 2 + 4 * i) ^ 0x80808080u;
}

void pack_q4_0(const std::byte* block, uint64_t g, const Row& row) {
  row.block_scales[g] = load<uint16_t>(block);
  pack_nibbles(block + 2, row.values + 4 * g);
}

void pack_q4_1(const std::byte* block, uint64_t g, const Row& row) {
  row.pairs[g] = load<Word>(block);
  pack_nibbles(block + 4, row.values + 4 * g);
}

void pack_q5_0(const std::byte* block, uint64_t g, const Row& row) {
  row.block_scales[g] = load<uint16_t>(block);
  row.high[g] = spread_bits(load<Word>(block + 2));
  pack_nibbles(block + 6, row.values + 4 * g);
}

void pack_q5_1(const std::byte* block, uint64_t g, const Row& row) {
  row.pairs[g] = load<Word>(block);
  row.high[g] = spread_bits(load<Word>(block + 4));
  pack_nibbles(block + 8, row.values + 4 * g);
}

// The nibbles are indices of a table of integers and are copied.
void pack_iq4_nl(const std::byte* block, uint64_t g, const Row& row) { pack_q4_0(block, g, row); }

// The scale is a power of two for numbers that are twice as large as the file means. Half of it is
// exact in bf16, also for the two exponents whose half is below the normal numbers.
void pack_mxfp4(const std::byte* block, uint64_t g, const Row& row) {
  const unsigned exponent = byte_at(block);
  row.block_scales[g] =
      static_cast<uint16_t>(exponent < 2 ? 0x20u << exponent : (exponent - 1) << 7);
  pack_nibbles(block + 1, row.values + 4 * g);
}

// A block is a scale in f32, then E4M3 numbers. The blocks of one span have one scale.
void pack_f8_e4m3(const std::byte* block, uint64_t g, const Row& row) {
  row.pairs[g / 4] = load<Word>(block);
  std::memcpy(row.values + 8 * g, block + 4, 32);
}

// A block is a scale and a zero point, then nibbles.
void pack_int4_32(const std::byte* block, uint64_t g, const Row& row) { pack_q4_1(block, g, row); }
void pack_int4_128(const std::byte* block, uint64_t g, const Row& row) {
  row.pairs[g / 4] = load<Word>(block);
  pack_nibbles(block + 4, row.values + 4 * g);
}

// Blocks of 256; `b` counts them along the row.

// Packs two bits of each of 32 elements, which lie at bit `shift` of 32 bytes of the file. Quads s
// and s + 4 go to word s / 2: to the lower half of its bytes where s is even.
void pack_two_bits(const std::byte* from, unsigned shift, Word* values) {
  values[0] = values[1] = 0;
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned quad = i / 4 % 4, at = 8 * (i % 4) + quad % 2 * 4 + i / 16 * 2;
    values[quad / 2] |= (byte_at(from + i) >> shift & 3) << at;
  }
}

void pack_q2_k(const std::byte* block, uint64_t b, const Row& row) {
  row.super_scales[b] = load<Word>(block + 80);
  std::memcpy(row.block_scales + 8 * b, block, 16);
  for (unsigned g = 0; g < 8; ++g)
    pack_two_bits(block + 16 + g / 4 * 32, g % 4 * 2, row.values + 16 * b + 2 * g);
}

void pack_q3_k(const std::byte* block, uint64_t b, const Row& row) {
  const float scale = half_to_float(load<uint16_t>(block + 108));
  std::memcpy(&row.super_scales[b], &scale, 4);
  const std::byte* packed = block + 96;
  for (unsigned g = 0; g < 8; ++g) {
    pack_two_bits(block + 32 + g / 4 * 32, g % 4 * 2, row.values + 16 * b + 2 * g);
    Word bits = 0;
    for (unsigned i = 0; i < 32; ++i) bits |= (byte_at(block + i) >> g & 1) << i;
    row.high[8 * b + g] = spread_bits(bits);
    // Each of sixteen scales has six bits: four in the first eight bytes, two in the last four.
    unsigned scales = 0;
    for (unsigned part = 0; part < 2; ++part) {
      const unsigned i = 2 * g + part;
      const unsigned low = byte_at(packed + i % 8) >> (i / 8 * 4) & 15;
      const unsigned six = low | (byte_at(packed + 8 + i % 4) >> (i / 4 * 2) & 3) << 4;
      scales |= ((six - 32) & 255) << (8 * part);
    }
    row.block_scales[8 * b + g] = static_cast<uint16_t>(scales);
  }
}

void pack_iq4_xs(const std::byte* block, uint64_t b, const Row& row) {
  const float scale = half_to_float(load<uint16_t>(block));
  std::memcpy(&row.super_scales[b], &scale, 4);
  auto* scales = reinterpret_cast<uint8_t*>(row.block_scales) + 8 * b;
  for (unsigned g = 0; g < 8; ++g) {
    // A scale has six bits: four in a nibble, two in the word in front.
    const unsigned low = byte_at(block + 4 + g / 2) >> (g % 2 * 4) & 15;
    scales[g] = static_cast<uint8_t>((low | (load<uint16_t>(block + 2) >> (2 * g) & 3) << 4) - 32);
    pack_nibbles(block + 8 + 16 * g, row.values + 32 * b + 4 * g);
  }
}

// Twelve bytes hold eight scales and eight minima of six bits each.
void pack_sub_pairs(const std::byte* packed, uint16_t* block_scales) {
  for (unsigned g = 0; g < 8; ++g) {
    unsigned scale = byte_at(packed + g) & 63, minimum = byte_at(packed + g + 4) & 63;
    if (g >= 4) {
      scale = (byte_at(packed + g + 4) & 15) | byte_at(packed + g - 4) >> 6 << 4;
      minimum = byte_at(packed + g + 4) >> 4 | byte_at(packed + g) >> 6 << 4;
    }
    block_scales[g] = static_cast<uint16_t>(scale | minimum << 8);
  }
}

// Thirty-two bytes hold two groups of 32, in their low and in their high nibbles.
void pack_group_nibbles(const std::byte* from, Word* values) {
  for (unsigned g = 0; g < 8; ++g) {
    const unsigned shift = g % 2 * 4;
    for (unsigned i = 0; i < 4; ++i) {
      const Word first = load<Word>(from + g / 2 * 32 + 4 * i),
                 second = load<Word>(from + g / 2 * 32 + 16 + 4 * i);
      values[4 * g + i] = (first >> shift & 0x0f0f0f0fu) | (second >> shift & 0x0f0f0f0fu) << 4;
    }
  }
}

void pack_q4_k(const std::byte* block, uint64_t b, const Row& row) {
  row.super_scales[b] = load<Word>(block);
  pack_sub_pairs(block + 4, row.block_scales + 8 * b);
  pack_group_nibbles(block + 16, row.values + 32 * b);
}

void pack_q5_k(const std::byte* block, uint64_t b, const Row& row) {
  row.super_scales[b] = load<Word>(block);
  pack_sub_pairs(block + 4, row.block_scales + 8 * b);
  pack_group_nibbles(block + 48, row.values + 32 * b);
  for (unsigned g = 0; g < 8; ++g) {
    Word bits = 0;
    for (unsigned i = 0; i < 32; ++i) bits |= (byte_at(block + 16 + i) >> g & 1) << i;
    row.high[8 * b + g] = spread_bits(bits);
  }
}

void pack_q6_k(const std::byte* block, uint64_t b, const Row& row) {
  const float scale = half_to_float(load<uint16_t>(block + 208));
  std::memcpy(&row.super_scales[b], &scale, 4);
  for (unsigned g = 0; g < 8; ++g) {
    // Each half of 256 values has four runs of 32, whose low bits share 64 bytes and high bits 32.
    const unsigned half = g / 4, run = g % 4;
    unsigned six[32];
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned low = byte_at(block + half * 64 + run % 2 * 32 + i) >> (run / 2 * 4) & 15;
      six[i] = low | (byte_at(block + 128 + half * 32 + i) >> (run * 2) & 3) << 4;
    }
    pack_six_bits(six, row.values + 32 * b + 4 * g, row.high + 16 * b + 2 * g);
    row.block_scales[8 * b + g] = load<uint16_t>(block + 192 + 2 * g);
  }
}

struct Packing {
  uint32_t format;
  uint32_t gguf_bytes;
  void (*pack)(const std::byte*, uint64_t, const Row&);
};

// One entry for each type from kQ8_0 on, in the order of the enumeration.
const Packing kPackings[] = {
    {BLOCKS_Q8_0, 34, pack_q8_0},
    {BLOCKS_FORMAT(4u, 0u, BLOCKS_SCALE, 8u), 18, pack_q4_0},
    {BLOCKS_FORMAT(4u, 0u, BLOCKS_PAIR, 0u), 20, pack_q4_1},
    {BLOCKS_FORMAT(4u, 1u, BLOCKS_SCALE, 16u), 22, pack_q5_0},
    {BLOCKS_FORMAT(4u, 1u, BLOCKS_PAIR, 0u), 24, pack_q5_1},
    {BLOCKS_FORMAT(4u, 0u, BLOCKS_SUB_PAIR, 0u), 144, pack_q4_k},
    {BLOCKS_FORMAT(4u, 1u, BLOCKS_SUB_PAIR, 0u), 176, pack_q5_k},
    {BLOCKS_FORMAT(4u, 2u, BLOCKS_SUB_SCALES, 32u), 210, pack_q6_k},
    {BLOCKS_FORMAT(2u, 0u, BLOCKS_SUB_NIBBLES, 0u), 84, pack_q2_k},
    {BLOCKS_FORMAT(2u, 1u, BLOCKS_SUB_SCALES, 4u), 110, pack_q3_k},
    {BLOCKS_FORMAT_OF_CODES(4u, BLOCKS_SCALE, 128u, BLOCKS_IQ4, 0u), 18, pack_iq4_nl},
    {BLOCKS_FORMAT_OF_CODES(4u, BLOCKS_SUB_BYTE, 128u, BLOCKS_IQ4, 0u), 136, pack_iq4_xs},
    {BLOCKS_FORMAT_OF_CODES(4u, BLOCKS_SCALE_BF16, 16u, BLOCKS_FP4, 0u), 17, pack_mxfp4},
    {BLOCKS_FORMAT_OF_CODES(8u, BLOCKS_SCALE_F32, 0u, BLOCKS_E4M3, 2u), 36, pack_f8_e4m3},
    {BLOCKS_FORMAT_OF_CODES(4u, BLOCKS_ZERO_POINT, 0u, BLOCKS_INTEGERS, 0u), 20, pack_int4_32},
    {BLOCKS_FORMAT_OF_CODES(4u, BLOCKS_ZERO_POINT, 0u, BLOCKS_INTEGERS, 2u), 20, pack_int4_128},
};

const Packing& packing_of(DataType type) {
  assert(is_block_type(type) && !is_grid_type(type));
  return kPackings[static_cast<size_t>(type) - static_cast<size_t>(DataType::kQ8_0)];
}

}  // namespace

uint32_t block_format(DataType type) {
  if (type == DataType::kBF16) return 1;
  if (is_grid_type(type)) return grid_format(type);
  return is_block_type(type) ? packing_of(type).format : 0;
}

uint32_t gguf_block_bytes(DataType type) {
  return is_grid_type(type) ? grid_block_bytes(type) : packing_of(type).gguf_bytes;
}

void pack_blocks(DataType type, uint64_t columns, std::span<const std::byte> from,
                 std::span<std::byte> to) {
  if (is_grid_type(type)) return pack_grids(type, columns, from, to);
  const Packing& packing = packing_of(type);
  const uint64_t blocks = columns / block_elements(type), stride = row_bytes(type, columns);
  const uint64_t rows = from.size() / (blocks * packing.gguf_bytes);
  assert(to.size() >= rows * stride);
  std::memset(to.data(), 0, rows * stride);
  for (uint64_t r = 0; r < rows; ++r) {
    Word* words = reinterpret_cast<Word*>(to.data() + r * stride);
    Row row;
    row.values = words;
    row.high = words + BLOCKS_HIGH_AT(packing.format, columns);
    row.pairs = words + BLOCKS_SCALES_AT(packing.format, columns);
    row.block_scales = reinterpret_cast<uint16_t*>(row.pairs);
    row.super_scales = words + BLOCKS_SUPER_SCALES_AT(packing.format, columns);
    const std::byte* block = from.data() + r * blocks * packing.gguf_bytes;
    for (uint64_t b = 0; b < blocks; ++b) packing.pack(block + b * packing.gguf_bytes, b, row);
  }
}

}  // namespace mulciber
