#include "conformance/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "conformance/case_program.h"

namespace mulciber::conformance {
namespace {

struct Sums {
  double error = 0, square = 0;
};

void compare_output(size_t index, const std::vector<std::byte>& bytes, const HostTensor& expected, double tolerance,
                    Comparison& result, Sums& sums) {
  const size_t columns = std::max<uint64_t>(1, expected.shape.columns());
  double total_square = 0;
  for (double v : expected.values) {
    if (std::isfinite(v)) total_square += v * v;
  }
  const double tensor_rms = std::sqrt(total_square / static_cast<double>(std::max<size_t>(1, expected.values.size())));
  for (size_t row = 0; row * columns < expected.values.size(); ++row) {
    double error = 0, square = 0, worst = -1;
    size_t worst_at = 0;
    for (size_t c = 0; c < columns; ++c) {
      const size_t i = row * columns + c;
      const double want = expected.values[i], got = value_at(bytes, expected.type, i);
      double difference;
      if (expected.type == DataType::kU32 || !std::isfinite(want)) {
        const bool same = want == got || (std::isnan(want) && std::isnan(got));
        difference = same ? 0 : INFINITY;
      } else {
        difference = std::isnan(got) ? INFINITY : std::fabs(got - want);
        square += want * want;
      }
      error += difference * difference;
      if (difference > worst) {
        worst = difference;
        worst_at = i;
      }
    }
    sums.error += error;
    sums.square += square;
    // A row of (nearly) zeros is held to the scale of its tensor, reduced a million times.
    const double scale = std::max(std::sqrt(square / static_cast<double>(columns)), 1e-6 * tensor_rms);
    const double relative =
        error == 0 ? 0 : std::sqrt(error / static_cast<double>(columns)) / std::max(scale, 1e-30);
    const double over = error == 0 ? 0 : relative / tolerance;
    if (over > result.worst) {
      result.worst = over;
      result.detail = fmt::format("output {} row {} column {}: {:.9g}, expected {:.9g} (row error {:.3g}, allowed {:.3g})",
                                  index, row, worst_at % columns, value_at(bytes, expected.type, worst_at),
                                  expected.values[worst_at], relative, tolerance);
    }
  }
}

}  // namespace

Comparison compare(const std::vector<std::vector<std::byte>>& got, const std::vector<HostTensor>& expected,
                   double tolerance) {
  Comparison result;
  Sums sums;
  for (size_t i = 0; i < expected.size(); ++i) compare_output(i, got[i], expected[i], tolerance, result, sums);
  result.nmse = sums.square > 0 ? sums.error / sums.square : 0;
  return result;
}

}  // namespace mulciber::conformance
