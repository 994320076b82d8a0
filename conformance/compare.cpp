#include "conformance/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "conformance/bounds.h"
#include "conformance/case_program.h"
#include "runtime/op.h"

namespace mulciber::conformance {
namespace {

struct Sums {
  double error = 0, square = 0;
};

// |got - want| for comparison with the bound: 0 where both are infinite or NaN in the same way.
double difference(double got, double want, double bound, DataType type) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : kInfinity;
  if (got == want) return 0;
  if (std::isnan(got) || !std::isfinite(want)) return kInfinity;
  if (!std::isfinite(got)) {
    // Overflow is right where the exact value exceeds the type's range, within its bound.
    const double reach = std::fabs(want) + bound;
    return std::signbit(got) == std::signbit(want) && reach > largest_of(type) ? bound : kInfinity;
  }
  return std::fabs(got - want);
}

class Judge {
 public:
  Judge(const Quality& quality) : quality_(quality) {}

  void output(size_t index, const std::vector<std::byte>& bytes, const CpuTensor& expected) {
    const size_t columns = std::max<uint64_t>(1, expected.shape.columns()),
                 count = expected.values.size();
    const std::vector<double> values = values_of(bytes, expected.type, columns);
    double total_square = 0;
    for (double v : expected.values) {
      if (std::isfinite(v)) total_square += v * v;
    }
    const double tensor_rms =
        std::sqrt(total_square / static_cast<double>(std::max<size_t>(1, count)));
    for (size_t row = 0; row * columns < count; ++row) {
      Sums sums;
      double worst = 0;  // largest share in the row
      size_t worst_at = row * columns;
      for (size_t i = row * columns; i < (row + 1) * columns; ++i) {
        double bound = expected.bounds.empty() ? 0 : expected.bounds[i];
        if (bound == kInfinity) continue;  // not checked
        if (std::isnan(bound)) bound = 0;  // a faulty reference must not pass everything
        const double want = expected.values[i], got = values[i];
        const double error = difference(got, want, bound, expected.type);
        if (std::isfinite(want)) sums.square += want * want;
        if (error == 0) continue;
        sums.error += error * error;
        const double share = error <= bound ? error / bound : std::max(error / bound, 1.0000001);
        if (share > worst) {
          worst = share;
          worst_at = i;
        }
      }
      total_.error += sums.error;
      total_.square += sums.square;
      // A row of (near) zeros is measured by the scale of its tensor, times 1e-6.
      const double n = static_cast<double>(columns);
      const double scale = std::max({std::sqrt(sums.square / n), 1e-6 * tensor_rms, 1e-30});
      const double relative = std::sqrt(sums.error / n) / scale;
      // A single value may be the small difference of large terms: only its bound counts.
      const double quality = relative == 0 || count == 1 ? 0 : relative / quality_.row_error;
      if (worst > result_.worst ||
          (result_.worst <= 1 && quality > worst_quality_ && quality > 1)) {
        result_.detail =
            describe(index, expected, values[worst_at], row, worst_at, worst, relative);
      }
      result_.worst = std::max(result_.worst, worst);
      worst_quality_ = std::max(worst_quality_, quality);
    }
  }

  Comparison verdict() {
    if (total_.error > 0)
      result_.nmse = total_.square > 0 ? total_.error / total_.square : kInfinity;
    if (result_.worst > 1) {
      result_.status = Status::kFail;
    } else if (worst_quality_ > 1 || result_.nmse > quality_.nmse) {
      result_.status = Status::kQualityWarning;
      if (worst_quality_ <= 1) {
        result_.detail = fmt::format("normalized mean square error {:.3g}, at most {:.3g} expected",
                                     result_.nmse, quality_.nmse);
      }
    }
    return result_;
  }

 private:
  std::string describe(size_t index, const CpuTensor& expected, double got, size_t row, size_t at,
                       double share, double relative) const {
    const size_t columns = std::max<uint64_t>(1, expected.shape.columns());
    const double want = expected.values[at];
    std::string text = fmt::format("output {} row {} column {}: {:.9g}, expected {:.9g}", index,
                                   row, at % columns, got, want);
    if (expected.bounds.empty() || expected.bounds[at] == 0) return text + " exactly";
    text += fmt::format(" +- {:.3g} ({:.3g} of the bound; row error {:.3g}", expected.bounds[at],
                        share, relative);
    if (quality_.row_error < kInfinity)
      text += fmt::format(", {:.3g} is usual", quality_.row_error);
    return text + ")";
  }

  Quality quality_;
  Comparison result_;
  Sums total_;
  double worst_quality_ = 0;
};

// A sorted sample of a few thousand magnitudes of checked elements; infinities and NaN count as
// infinite. One of each `step` elements is drawn at random, because a mask may hide every third.
std::vector<double> magnitudes(const CpuTensor& tensor) {
  std::vector<double> sample;
  const size_t step = std::max<size_t>(1, tensor.values.size() / 4096);
  std::minstd_rand random;
  for (size_t first = 0; first < tensor.values.size(); first += step) {
    const size_t i = std::min(first + random() % step, tensor.values.size() - 1);
    if (!tensor.bounds.empty() && tensor.bounds[i] == kInfinity) continue;
    sample.push_back(std::isfinite(tensor.values[i]) ? std::fabs(tensor.values[i]) : kInfinity);
  }
  std::sort(sample.begin(), sample.end());
  return sample;
}

std::string doubt(const std::string& name, const CpuTensor& tensor) {
  constexpr size_t kLeast = 8;
  constexpr double kMost = 0.9;  // share of the elements that may be equal
  if (tensor.type == DataType::kU32) return "";
  const std::vector<double> sample = magnitudes(tensor);
  if (sample.size() < kLeast) return "";
  const auto share = [&](size_t count) {
    return static_cast<double>(count) / static_cast<double>(sample.size());
  };
  const size_t zeros = std::upper_bound(sample.begin(), sample.end(), 0.0) - sample.begin();
  if (share(zeros) > kMost) return fmt::format("{} is {:.0f} % zeros", name, 100 * share(zeros));
  const size_t finite = std::lower_bound(sample.begin(), sample.end(), kInfinity) - sample.begin();
  if (share(sample.size() - finite) > kMost) return name + " has hardly a finite number";
  // The largest set of magnitudes within a millionth of each other.
  size_t longest = 0;
  for (size_t begin = 0, end = 0; begin < finite; ++begin) {
    while (end < finite && sample[end] <= sample[begin] * (1 + 1e-6)) ++end;
    longest = std::max(longest, end - begin);
  }
  if (share(longest) > kMost) {
    return fmt::format("{:.0f} % of {} have one magnitude: saturated, or constant",
                       100 * share(longest), name);
  }
  // Bounds as large as the results would let anything pass.
  double squares = 0;
  std::vector<double> bounds;
  for (size_t i = 0; i < tensor.bounds.size(); ++i) {
    if (tensor.bounds[i] == kInfinity || !std::isfinite(tensor.values[i])) continue;
    bounds.push_back(tensor.bounds[i]);
    squares += tensor.values[i] * tensor.values[i];
  }
  if (bounds.empty()) return "";
  std::nth_element(bounds.begin(), bounds.begin() + bounds.size() / 2, bounds.end());
  const double median = bounds[bounds.size() / 2],
               rms = std::sqrt(squares / static_cast<double>(bounds.size()));
  return median > 0.1 * rms
             ? fmt::format("{} is {:.3g} on average, and its bounds {:.3g}", name, rms, median)
             : "";
}

}  // namespace

Quality quality_of(const Kernel* row) {
  if (!row) return {};
  // ggml's backend tests have this limit for products and attention.
  const bool stated = row->op == Op::kMatmul || row->op == Op::kAttention;
  return {row->tolerance, stated ? 5e-4 : std::numeric_limits<double>::infinity()};
}

Comparison compare(const std::vector<std::vector<std::byte>>& got,
                   std::span<const CpuTensor> expected, const Quality& quality) {
  Judge judge(quality);
  for (size_t i = 0; i < expected.size(); ++i) judge.output(i, got[i], expected[i]);
  return judge.verdict();
}

std::string why_mistrusted(std::span<const CpuTensor> inputs, std::span<const CpuTensor> expected) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::string text = doubt(fmt::format("input {}", i), inputs[i]); !text.empty()) return text;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const CpuTensor& output = expected[i];
    if (std::string text = doubt(fmt::format("expected output {}", i), output); !text.empty())
      return text;
    for (size_t e = 0; e < output.values.size() && output.type != DataType::kU32; ++e) {
      if (!output.bounds.empty() && output.bounds[e] == kInfinity) continue;
      const double value = output.values[e];
      if (std::isnan(value) ||
          (std::isfinite(value) && std::fabs(value) > largest_of(output.type))) {
        return fmt::format("expected output {} is {:.3g} at element {}, which its type cannot hold",
                           i, value, e);
      }
    }
  }
  return "";
}

std::string why_inexact(std::span<const CpuTensor> expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t e = 0; e < expected[i].bounds.size(); ++e) {
      const double bound = expected[i].bounds[e];
      if (bound != 0 && bound != kInfinity) {
        return fmt::format(
            "said to be exact, but expected output {} may be off by {:.3g} at element {}", i, bound,
            e);
      }
    }
  }
  return "";
}

}  // namespace mulciber::conformance
