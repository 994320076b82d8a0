#include "models/generation/given_rows.h"

#include <algorithm>

namespace mulciber {

GivenPart given_part(std::span<const GivenRows> rows, uint64_t width, uint32_t first, uint32_t fed,
                     uint32_t length, uint32_t own, float scale) {
  GivenPart part;
  for (uint32_t i = 0; i < length; ++i) part.numbers.push_back(own + i);
  uint32_t number = 0;
  for (const GivenRows& given : rows) {
    const auto count = static_cast<uint32_t>(given.values.size() / width);
    const uint32_t begin = std::max(given.first, first),
                   end = std::min(given.first + count, first + fed);
    for (uint32_t token = begin; token < end; ++token) {
      const auto row = given.values.subspan((token - given.first) * width, width);
      for (const float value : row) part.values.push_back(value * scale);
      part.numbers[token - first] = number++;
    }
  }
  return part;
}

}  // namespace mulciber
