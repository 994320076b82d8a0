#include "conformance/block_input.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <glm/gtc/packing.hpp>

#include "base/blocks.h"
#include "conformance/bounds.h"
#include "conformance/grid_input.h"

namespace mulciber::conformance {
namespace {

double half_of(uint32_t bits) { return glm::unpackHalf1x16(static_cast<uint16_t>(bits)); }
uint32_t half_bits(double value) { return glm::packHalf1x16(static_cast<float>(value)); }

/// Decodes one row's words, element by element.
class BlockRow {
 public:
  BlockRow(uint32_t format, uint64_t columns, std::span<const uint32_t> words)
      : format_(format),
        words_(words),
        high_(BLOCKS_HIGH_AT(format, columns)),
        entries_(BLOCKS_SCALES_AT(format, columns)),
        supers_(BLOCKS_SUPER_SCALES_AT(format, columns)) {}

  /// The integer (or coded number) of element i including its offset, to be multiplied with its
  /// scale.
  double value(uint64_t i) const {
    constexpr double kIQ4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};
    constexpr double kFp4[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    const uint32_t code = number(i);
    switch (BLOCKS_CODE(format_)) {
      case BLOCKS_IQ4: return kIQ4[code] + 128;
      case BLOCKS_FP4: return 16 + (code < 8 ? 1 : -1) * kFp4[code % 8];
      case BLOCKS_E4M3: {
        const int exponent = static_cast<int>(code >> 3 & 15),
                  fraction = static_cast<int>(code & 7);
        return (code < 128 ? 1 : -1) *
               std::ldexp(exponent == 0 ? fraction : 8 + fraction, std::max(exponent, 1) - 10);
      }
      default: return code;
    }
  }

  /// The stored unsigned number of element i.
  uint32_t number(uint64_t i) const {
    const uint64_t group = i / 32, quad = i % 32 / 4, byte = i % 4, upper = quad / 4;
    if (BLOCKS_VALUE_BITS(format_) == 8) return words_[group * 8 + quad] >> (8 * byte) & 255;
    const bool two = BLOCKS_VALUE_BITS(format_) == 2;
    uint32_t number =
        two ? words_[group * 2 + quad % 4 / 2] >> (8 * byte + quad % 2 * 4 + 2 * upper) & 3
            : words_[group * 4 + quad % 4] >> (8 * byte + 4 * upper) & 15;
    if (BLOCKS_HIGH_BITS(format_) == 1)
      number |= (words_[high_ + group] >> (8 * byte + quad) & 1) << (two ? 2 : 4);
    if (BLOCKS_HIGH_BITS(format_) == 2) {
      number |= (words_[high_ + group * 2 + upper] >> (8 * byte + 2 * (quad % 4)) & 3) << 4;
    }
    return number;
  }

  /// The factor of element i's value, and the addend.
  std::pair<double, double> scale(uint64_t i) const {
    const uint64_t group = i / 32;
    const double offset = BLOCKS_OFFSET(format_);
    if (BLOCKS_WORD_SCALES(format_)) {
      const uint32_t word = words_[entries_ + (group >> BLOCKS_SPAN(format_))];
      const double scale = half_of(word & 0xffff);
      if (BLOCKS_SCALES(format_) == BLOCKS_SCALE_F32) return {std::bit_cast<float>(word), 0};
      if (BLOCKS_SCALES(format_) == BLOCKS_PAIR) return {scale, half_of(word >> 16)};
      return {scale, -scale * (word >> 16)};
    }
    if (BLOCKS_SCALES(format_) == BLOCKS_SUB_BYTE) {
      const uint32_t super = words_[supers_ + i / 256];
      const auto sub = static_cast<int8_t>(words_[entries_ + group / 4] >> (group % 4 * 8));
      const double scale = std::bit_cast<float>(super) * static_cast<double>(sub);
      return {scale, -offset * scale};
    }
    const uint32_t entry = words_[entries_ + group / 2] >> (group % 2 * 16) & 0xffff;
    if (BLOCKS_SCALES(format_) == BLOCKS_SCALE) return {half_of(entry), -offset * half_of(entry)};
    if (BLOCKS_SCALES(format_) == BLOCKS_SCALE_BF16) {
      const double scale = std::bit_cast<float>(entry << 16);
      return {scale, -offset * scale};
    }
    const uint32_t super = words_[supers_ + i / 256];
    if (BLOCKS_SCALES(format_) == BLOCKS_SUB_NIBBLES) {
      const uint32_t both = i % 32 < 16 ? entry & 255 : entry >> 8;
      return {half_of(super & 0xffff) * (both & 15), -half_of(super >> 16) * (both >> 4)};
    }
    if (BLOCKS_SCALES(format_) == BLOCKS_SUB_PAIR) {
      return {half_of(super & 0xffff) * (entry & 255), -half_of(super >> 16) * (entry >> 8)};
    }
    const auto sub = static_cast<int8_t>(i % 32 < 16 ? entry & 255 : entry >> 8);
    const double scale = std::bit_cast<float>(super) * static_cast<double>(sub);
    return {scale, -offset * scale};
  }

 private:
  uint32_t format_;
  std::span<const uint32_t> words_;
  uint64_t high_, entries_, supers_;
};

/// About half of a format's largest number.
double most_of(uint32_t format) {
  switch (BLOCKS_CODE(format)) {
    case BLOCKS_IQ4: return 256;
    case BLOCKS_FP4: return 32;
    case BLOCKS_E4M3: return 900;
    default: return std::exp2(BLOCKS_VALUE_BITS(format) + BLOCKS_HIGH_BITS(format));
  }
}

/// Random E4M3 bytes without NaN; with `whole`, whole numbers up to 15.
uint32_t e4m3_word(uint32_t bits, bool whole) {
  for (int at = 0; at < 32; at += 8) {
    const uint32_t code = bits >> at & 255;
    if ((code & 127) == 127) bits ^= 1u << at;
    if (!whole) continue;
    const uint32_t number = code & 15;
    uint32_t exponent = 0;
    while (number >> (exponent + 1) != 0) ++exponent;
    const uint32_t e4m3 = number == 0 ? 0 : (exponent + 7) << 3 | (number << 3 >> exponent & 7);
    bits = (bits & ~(127u << at)) | e4m3 << at;
  }
  return bits;
}

/// Fills the scales of one row.
void draw_scales(uint32_t format, uint64_t columns, double deviation, bool whole,
                 std::span<uint32_t> words, std::mt19937& random) {
  std::uniform_real_distribution<double> factor(0.5, 1.5);
  auto between = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  auto sign = [&] { return random() % 4 == 0 ? -1.0 : 1.0; };
  const double most = most_of(format);
  const double step = deviation * 3.5 / most;
  const uint64_t entries = BLOCKS_SCALES_AT(format, columns),
                 supers = BLOCKS_SUPER_SCALES_AT(format, columns);
  auto put_entry = [&](uint64_t group, uint32_t bits) {
    words[entries + group / 2] |= bits << (group % 2 * 16);
  };
  for (uint64_t group = 0; group < columns / 32; ++group) {
    switch (BLOCKS_SCALES(format)) {
      case BLOCKS_SCALE:
        put_entry(group, half_bits(sign() * (whole ? between(1, 2) : step * factor(random))));
        break;
      case BLOCKS_SCALE_BF16:
        put_entry(
            group,
            bits_of(static_cast<float>(sign() * (whole ? between(1, 2) : step * factor(random)))) >>
                16);
        break;
      case BLOCKS_SCALE_F32:
      case BLOCKS_ZERO_POINT: {
        const double scale = sign() * (whole ? between(1, 2) : step * factor(random));
        const auto zero = static_cast<uint32_t>(between(0, 16));
        words[entries + (group >> BLOCKS_SPAN(format))] = BLOCKS_SCALES(format) == BLOCKS_SCALE_F32
                                                              ? bits_of(static_cast<float>(scale))
                                                              : half_bits(scale) | zero << 16;
        break;
      }
      case BLOCKS_SUB_NIBBLES:
        for (int at = 0; at < 16; at += 8) {
          put_entry(group, static_cast<uint32_t>(between(1, whole ? 3 : 15) | between(0, 15) << 4)
                               << at);
        }
        break;
      case BLOCKS_SUB_BYTE: {
        const auto scale = static_cast<uint8_t>(between(whole ? -2 : -32, whole ? 2 : 31));
        words[entries + group / 4] |= uint32_t{scale} << (group % 4 * 8);
        break;
      }
      case BLOCKS_PAIR: {
        const double scale = whole ? between(1, 3) : step * factor(random);
        const double least = whole ? between(-20, 3) : -scale * most / 2 * factor(random);
        words[entries + group] = half_bits(scale) | half_bits(least) << 16;
        break;
      }
      case BLOCKS_SUB_PAIR:
        put_entry(group, static_cast<uint32_t>(between(1, whole ? 3 : 63) |
                                               between(0, whole ? 40 : 63) << 8));
        break;
      default: {
        const int range = whole ? 2 : 127;
        const auto low = static_cast<uint8_t>(between(-range, range)),
                   high = static_cast<uint8_t>(between(-range - 1, range));
        put_entry(group, low | uint32_t{high} << 8);
      }
    }
  }
  if (!BLOCKS_HAS_SUPER_SCALES(format)) return;
  for (uint64_t block = 0; block < columns / 256; ++block) {
    // The middle of sub-scales is about 8 (of 15), 32 (of 63) or 64 (of 127).
    const bool nibbles = BLOCKS_SCALES(format) == BLOCKS_SUB_NIBBLES;
    if (nibbles || BLOCKS_SCALES(format) == BLOCKS_SUB_PAIR) {
      const double middle = nibbles ? 8 : 32;
      // Scales stay above the subnormal halves, which a device may flush to zero.
      const double scale = whole ? 1 : std::max(step / middle * factor(random), kSmallest16);
      const double least =
          whole ? 1 : std::max(step * most / (2 * middle) * factor(random), kSmallest16);
      words[supers + block] = half_bits(scale) | half_bits(least) << 16;
    } else {
      words[supers + block] = bits_of(
          static_cast<float>(round_to(DataType::kF16, whole ? 1 : step / 64 * factor(random))));
    }
  }
}

}  // namespace

bool covers_blocks(DataType type) {
  switch (type) {
    case DataType::kQ8_0:
    case DataType::kQ4_0:
    case DataType::kQ5_K:
    case DataType::kQ6_K:
    case DataType::kQ2_K:
    case DataType::kIQ4_XS:
    case DataType::kMXFP4:
    case DataType::kF8E4M3:
    case DataType::kInt4_128:
    case DataType::kIQ2_S:
    case DataType::kIQ3_XXS: return true;
    default: return false;
  }
}

void read_blocks(DataType type, uint64_t columns, std::span<const uint32_t> words,
                 std::vector<double>& values, std::vector<double>& sizes) {
  const uint64_t stride = row_bytes(type, columns) / 4;
  for (uint64_t first = 0; first < words.size(); first += stride) {
    if (is_grid_type(type)) {
      for (double value : read_grid_row(type, columns, words.subspan(first, stride))) {
        values.push_back(value);
        sizes.push_back(std::fabs(value));
      }
      continue;
    }
    const BlockRow row(block_format(type), columns, words.subspan(first, stride));
    for (uint64_t i = 0; i < columns; ++i) {
      const auto [scale, least] = row.scale(i);
      const double product = scale * row.value(i);
      values.push_back(product + least);
      sizes.push_back(std::fabs(product) + std::fabs(least));
    }
  }
}

std::vector<Bounded> q8_0_reference(std::span<const Bounded> block) {
  Bounded largest;
  for (Bounded x : block) largest = max(largest, Bounded(std::fabs(x.value), x.error));
  const Bounded step = largest / Bounded(127);
  const double stored = round_to(DataType::kF16, step.value);
  const double stored_off = step.error + stored_error(DataType::kF16, step.value, step.error);
  std::vector<Bounded> result(block.size());
  for (size_t i = 0; i < block.size() && step.value > 0; ++i) {
    const Bounded scaled = block[i] * (Bounded(1) / step);
    const double number = std::round(scaled.value);
    const double least = std::round(scaled.value - scaled.error),
                 most = std::round(scaled.value + scaled.error);
    const double off = std::max(most - number, number - least);
    result[i] = {stored * number, std::fabs(number) * stored_off + off * (step.value + stored_off)};
  }
  return result;
}

void put_q8_0(CpuTensor& output, size_t first, std::span<const Bounded> columns) {
  const size_t block = block_elements(DataType::kQ8_0);
  for (size_t at = 0; at < columns.size(); at += block) {
    const std::vector<Bounded> numbers = q8_0_reference(columns.subspan(at, block));
    for (size_t i = 0; i < block; ++i) {
      output.values[first + at + i] = numbers[i].value;
      output.bounds[first + at + i] = numbers[i].error;
    }
  }
}

CaseInput block_input(Shape shape, DataType type, double deviation, bool whole) {
  CaseInput input{shape, type, nullptr, nullptr};
  const uint64_t columns = shape.columns(), stride = row_bytes(type, columns) / 4;
  input.draw = [=](std::mt19937& random) {
    const uint32_t format = block_format(type);
    std::vector<uint32_t> words(shape.rows() * stride);
    for (uint64_t row = 0; row < shape.rows(); ++row) {
      const std::span<uint32_t> line(words.data() + row * stride, stride);
      if (is_grid_type(type)) {
        draw_grid_row(type, columns, deviation, whole, line, random);
        continue;
      }
      for (uint64_t i = 0; i < BLOCKS_SCALES_AT(format, columns); ++i) {
        line[i] = random();
        if (BLOCKS_CODE(format) == BLOCKS_E4M3) line[i] = e4m3_word(line[i], whole);
      }
      draw_scales(format, columns, deviation, whole, line, random);
    }
    CpuTensor tensor{shape, type, {}, {}};
    read_blocks(type, columns, words, tensor.values, tensor.sizes);
    tensor.bytes.resize(words.size() * 4);
    std::memcpy(tensor.bytes.data(), words.data(), tensor.bytes.size());
    return tensor;
  };
  return input;
}

}  // namespace mulciber::conformance
