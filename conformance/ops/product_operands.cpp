#include "conformance/ops/product_operands.h"

#include <random>

namespace mulciber::conformance {

CaseInput whole_operand(Shape shape, DataType type, Part part) {
  if (block_elements(type) > 1) return whole_input(shape, type, 0);
  return {shape, type,
          [=](std::vector<double>& values, std::mt19937& random) {
            std::uniform_int_distribution<int> magnitude(0, 49), one_in_eight(0, 7);
            const uint64_t k = shape.columns(), half = k / 2;
            for (size_t i = 0; i < values.size(); ++i) {
              const uint64_t column = i % k;
              const int odd = (2 * magnitude(random) + 1) * (random() % 2 == 0 ? 1 : -1);
              // Where K is odd, the last column is in neither half.
              const bool second = part != Part::kFree && column >= half && column < 2 * half;
              values[i] = odd;
              if (second)
                values[i] = part == Part::kRepeated ? values[i - half] : -values[i - half];
              if (second && part == Part::kOpposed && one_in_eight(random) == 0) values[i] += 1;
              if (part != Part::kFree && column == 2 * half) values[i] = odd % 7;
            }
          },
          nullptr};
}

CaseInput small_operand(Shape shape, DataType type, Part part) {
  return {shape, type,
          [=](std::vector<double>& values, std::mt19937& random) {
            const uint64_t k = shape.columns(), half = k / 2;
            for (size_t i = 0; i < values.size(); ++i) {
              values[i] = 1 + static_cast<double>(random() % 2);
              if (i % k < half) continue;
              if (part == Part::kRepeated) values[i] = values[i - half];
              if (part == Part::kOpposed) values[i] = random() % 8 == 0 ? -1 : -values[i - half];
            }
          },
          nullptr};
}

}  // namespace mulciber::conformance
