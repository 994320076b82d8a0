#include "models/speech/word_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace mulciber {
namespace {

constexpr int kMedianReach = 3;  // to each side

/// Standardizes every position's shares over the tokens to mean 0 and deviation 1.
void standardize(std::span<double> shares, uint32_t tokens, uint32_t columns) {
  for (uint32_t column = 0; column < columns; ++column) {
    double sum = 0, squares = 0;
    for (uint32_t token = 0; token < tokens; ++token) {
      const double value = shares[uint64_t{token} * columns + column];
      sum += value;
      squares += value * value;
    }
    const double mean = sum / tokens;
    const double deviation = std::sqrt(std::max(squares / tokens - mean * mean, 0.0));
    for (uint32_t token = 0; token < tokens; ++token) {
      double& value = shares[uint64_t{token} * columns + column];
      value = deviation > 0 ? (value - mean) / deviation : 0;
    }
  }
}

/// The median of the positions around one; mirrored at the ends.
double median_at(std::span<const double> row, int at) {
  std::array<double, 2 * kMedianReach + 1> values;
  const int last = static_cast<int>(row.size()) - 1;
  for (int i = -kMedianReach; i <= kMedianReach; ++i) {
    int from = std::abs(at + i);
    if (from > last) from = std::max(2 * last - from, 0);
    const int place = i + kMedianReach;
    values[static_cast<size_t>(place)] = row[static_cast<size_t>(from)];
  }
  std::nth_element(values.begin(), values.begin() + kMedianReach, values.end());
  return values[kMedianReach];
}

}  // namespace

std::vector<uint32_t> dynamic_time_warping(std::span<const double> costs, uint32_t rows,
                                           uint32_t columns) {
  enum Step : uint8_t { kBoth, kRow, kColumn };
  const uint64_t width = uint64_t{columns} + 1;
  std::vector<double> least((uint64_t{rows} + 1) * width, std::numeric_limits<double>::infinity());
  std::vector<uint8_t> steps(least.size(), kBoth);
  least[0] = 0;
  for (uint64_t row = 1; row <= rows; ++row) {
    for (uint64_t column = 1; column <= columns; ++column) {
      const double both = least[(row - 1) * width + column - 1];
      const double up = least[(row - 1) * width + column], left = least[row * width + column - 1];
      const Step step = both < up && both < left ? kBoth : up < both && up < left ? kRow : kColumn;
      steps[row * width + column] = step;
      least[row * width + column] =
          costs[(row - 1) * columns + column - 1] + (step == kBoth  ? both
                                                     : step == kRow ? up
                                                                    : left);
    }
  }
  std::vector<uint32_t> first(rows, 0);
  for (uint64_t row = rows, column = columns; row > 0 && column > 0;) {
    first[row - 1] = static_cast<uint32_t>(column - 1);
    const uint8_t step = steps[row * width + column];
    if (step != kColumn) --row;
    if (step != kRow) --column;
  }
  return first;
}

std::vector<uint32_t> align_tokens(std::span<const float> attention, uint32_t heads, uint32_t rows,
                                   uint32_t positions, uint32_t first, uint32_t used,
                                   std::span<const std::pair<uint32_t, uint32_t>> chosen) {
  used = std::clamp(used, 1u, positions);
  std::vector<double> mean(uint64_t{rows} * used, 0.0), shares(mean.size());
  for (const auto& [layer, head] : chosen) {
    const uint64_t begin = (uint64_t{layer} * heads + head) * rows * positions;
    for (uint32_t token = 0; token < rows; ++token) {
      const std::span<const float> row =
          attention.subspan(begin + uint64_t{token} * positions, used);
      double sum = 0;
      for (const float value : row) sum += value;
      for (uint32_t column = 0; column < used; ++column)
        shares[uint64_t{token} * used + column] = sum > 0 ? row[column] / sum : 0;
    }
    standardize(shares, rows, used);
    for (uint32_t token = 0; token < rows; ++token) {
      const std::span<const double> row =
          std::span<const double>(shares).subspan(uint64_t{token} * used, used);
      for (uint32_t column = 0; column < used; ++column)
        mean[uint64_t{token} * used + column] -= median_at(row, static_cast<int>(column));
    }
  }
  return dynamic_time_warping(std::span<const double>(mean).subspan(uint64_t{first} * used),
                              rows - first, used);
}

}  // namespace mulciber
