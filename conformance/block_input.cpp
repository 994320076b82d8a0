#include "conformance/block_input.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <glm/gtc/packing.hpp>

#include "base/blocks.h"
#include "conformance/bounds.h"

namespace mulciber::conformance {
namespace {

double half_of(uint32_t bits) { return glm::unpackHalf1x16(static_cast<uint16_t>(bits)); }
uint32_t half_bits(double value) { return glm::packHalf1x16(static_cast<float>(value)); }

/// One row's words, element by element.
class BlockRow {
 public:
  BlockRow(uint32_t format, uint64_t columns, std::span<const uint32_t> words)
      : format_(format),
        words_(words),
        high_(BLOCKS_HIGH_AT(format, columns)),
        entries_(BLOCKS_SCALES_AT(format, columns)),
        supers_(BLOCKS_SUPER_SCALES_AT(format, columns)) {}

  /// The unsigned number of element i.
  uint32_t number(uint64_t i) const {
    const uint64_t group = i / 32, quad = i % 32 / 4, byte = i % 4, upper = quad / 4;
    if (BLOCKS_VALUE_BITS(format_) == 8) return words_[group * 8 + quad] >> (8 * byte) & 255;
    uint32_t number = words_[group * 4 + quad % 4] >> (8 * byte + 4 * upper) & 15;
    if (BLOCKS_HIGH_BITS(format_) == 1)
      number |= (words_[high_ + group] >> (8 * byte + quad) & 1) << 4;
    if (BLOCKS_HIGH_BITS(format_) == 2) {
      number |= (words_[high_ + group * 2 + upper] >> (8 * byte + 2 * (quad % 4)) & 3) << 4;
    }
    return number;
  }

  /// What element i's number is multiplied with, and what is added.
  std::pair<double, double> scale(uint64_t i) const {
    const uint64_t group = i / 32;
    const double offset = BLOCKS_OFFSET(format_);
    if (BLOCKS_SCALES(format_) == BLOCKS_PAIR) {
      const uint32_t pair = words_[entries_ + group];
      return {half_of(pair & 0xffff), half_of(pair >> 16)};
    }
    const uint32_t entry = words_[entries_ + group / 2] >> (group % 2 * 16) & 0xffff;
    if (BLOCKS_SCALES(format_) == BLOCKS_SCALE) return {half_of(entry), -offset * half_of(entry)};
    const uint32_t super = words_[supers_ + i / 256];
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

/// Fills the scales of one row.
void draw_scales(uint32_t format, uint64_t columns, double deviation, bool whole,
                 std::span<uint32_t> words, std::mt19937& random) {
  std::uniform_real_distribution<double> factor(0.5, 1.5);
  auto between = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  auto sign = [&] { return random() % 4 == 0 ? -1.0 : 1.0; };
  const double most =
      std::exp2(BLOCKS_VALUE_BITS(format) + BLOCKS_HIGH_BITS(format));  // numbers are below
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
  if (BLOCKS_SCALES(format) < BLOCKS_SUB_PAIR) return;
  for (uint64_t block = 0; block < columns / 256; ++block) {
    // Sub-scales are about 32 (of 63) or 64 (of 127) in the middle.
    if (BLOCKS_SCALES(format) == BLOCKS_SUB_PAIR) {
      // Not below the normal halves, which a device may take for zero.
      const double scale = whole ? 1 : std::max(step / 32 * factor(random), kSmallest16);
      const double least = whole ? 1 : std::max(step * most / 64 * factor(random), kSmallest16);
      words[supers + block] = half_bits(scale) | half_bits(least) << 16;
    } else {
      words[supers + block] = bits_of(
          static_cast<float>(round_to(DataType::kF16, whole ? 1 : step / 64 * factor(random))));
    }
  }
}

}  // namespace

void read_blocks(DataType type, uint64_t columns, std::span<const uint32_t> words,
                 std::vector<double>& values, std::vector<double>& sizes) {
  const uint64_t stride = row_bytes(type, columns) / 4;
  for (uint64_t first = 0; first < words.size(); first += stride) {
    const BlockRow row(block_format(type), columns, words.subspan(first, stride));
    for (uint64_t i = 0; i < columns; ++i) {
      const auto [scale, least] = row.scale(i);
      const double product = scale * row.number(i);
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

void put_q8_0(HostTensor& output, size_t first, std::span<const Bounded> columns) {
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
      for (uint64_t i = 0; i < BLOCKS_SCALES_AT(format, columns); ++i) line[i] = random();
      draw_scales(format, columns, deviation, whole, line, random);
    }
    HostTensor tensor{shape, type, {}, {}};
    read_blocks(type, columns, words, tensor.values, tensor.sizes);
    tensor.bytes.resize(words.size() * 4);
    std::memcpy(tensor.bytes.data(), words.data(), tensor.bytes.size());
    return tensor;
  };
  return input;
}

}  // namespace mulciber::conformance
