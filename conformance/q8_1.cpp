#include "conformance/q8_1.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/blocks.h"

namespace mulciber::conformance {
namespace {

constexpr uint64_t kBlock = 32;

int integer_at(std::span<const uint32_t> row, uint64_t i) {
  return static_cast<int8_t>(row[i / 4] >> (8 * (i % 4)) & 255);
}

/// The second word of a block's scales.
uint32_t sums_of(std::span<const uint32_t> row, uint64_t block) {
  int sums[2] = {};
  for (uint64_t i = 0; i < kBlock; ++i) sums[i / 16] += integer_at(row, block * kBlock + i);
  return (static_cast<uint32_t>(sums[0]) & 0xffff) | static_cast<uint32_t>(sums[1]) << 16;
}

}  // namespace

std::vector<double> read_q8_1(uint64_t columns, std::span<const uint32_t> words) {
  const uint64_t stride = row_bytes(DataType::kQ8_1, columns) / 4;
  std::vector<double> values;
  for (uint64_t first = 0; first < words.size(); first += stride) {
    const std::span<const uint32_t> row = words.subspan(first, stride);
    for (uint64_t i = 0; i < columns; ++i) {
      const uint64_t block = i / kBlock, at = Q8_1_SCALES_AT(columns) + block * 2;
      const double scale =
          sums_of(row, block) == row[at + 1] ? std::bit_cast<float>(row[at]) : std::nan("");
      values.push_back(scale * integer_at(row, i));
    }
  }
  return values;
}

CaseInput q8_1_input(Shape shape, double deviation, bool whole) {
  CaseInput input{shape, DataType::kQ8_1, nullptr, nullptr};
  input.draw = [=](std::mt19937& random) {
    const uint64_t columns = shape.columns(), stride = row_bytes(DataType::kQ8_1, columns) / 4;
    std::uniform_real_distribution<double> factor(0.5, 1.5);
    std::uniform_int_distribution<int> small(-15, 15), any(-127, 127);
    std::vector<uint32_t> words(shape.rows() * stride);
    for (uint64_t line = 0; line < shape.rows(); ++line) {
      const std::span<uint32_t> row(words.data() + line * stride, stride);
      for (uint64_t i = 0; i < columns; ++i) {
        const auto byte = static_cast<uint8_t>(whole ? small(random) : any(random));
        row[i / 4] |= uint32_t{byte} << (8 * (i % 4));
      }
      for (uint64_t block = 0; block < columns / kBlock; ++block) {
        const double scale =
            whole ? 1 + static_cast<double>(random() % 2) : deviation / 73 * factor(random);
        row[Q8_1_SCALES_AT(columns) + block * 2] = bits_of(static_cast<float>(scale));
        row[Q8_1_SCALES_AT(columns) + block * 2 + 1] = sums_of(row, block);
      }
    }
    CpuTensor tensor{shape, DataType::kQ8_1, read_q8_1(columns, words), {}};
    tensor.bytes.resize(words.size() * 4);
    std::memcpy(tensor.bytes.data(), words.data(), tensor.bytes.size());
    return tensor;
  };
  return input;
}

void append_q8_1(CpuTensor& output, std::span<const Bounded> row) {
  for (size_t first = 0; first < row.size(); first += kBlock) {
    const std::span<const Bounded> block = row.subspan(first, kBlock);
    Bounded largest;
    for (const Bounded& x : block) largest = max(largest, Bounded(std::fabs(x.value), x.error));
    const Bounded step = largest / Bounded(127);
    for (const Bounded& x : block) {
      Bounded result;
      if (step.value > 0) {
        const Bounded scaled = x * (Bounded(1) / step);
        const double number = std::round(scaled.value);
        const double off = std::max(std::round(scaled.value + scaled.error) - number,
                                    number - std::round(scaled.value - scaled.error));
        result = {step.value * number,
                  std::fabs(number) * step.error + off * (step.value + step.error)};
      }
      output.values.push_back(result.value);
      output.bounds.push_back(result.error);
    }
  }
}

CpuTensor in_q8_1(const CpuTensor& values) {
  CpuTensor blocks{values.shape, DataType::kQ8_1, {}, {}};
  std::vector<Bounded> all(values.values.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = {values.values[i], values.bounds[i]};
  append_q8_1(blocks, all);  // rows are whole blocks
  return blocks;
}

}  // namespace mulciber::conformance
