#include "apps/cli/peaks.h"

#include "runtime/op.h"

#include <algorithm>

namespace mulciber::apps {
namespace {

constexpr double kSeconds = 0.1;    // least time for each size
constexpr double kMostSeconds = 2;  // for all sizes of one measurement

conformance::Timing time_chosen(Device& device, Op op, std::vector<uint64_t> shape,
                                KernelTypes types) {
  conformance::OpCase op_case = conformance::op_cases(op).make(shape, types);
  const Kernel* row = conformance::chosen_row(device.capabilities(), op_case, op);
  return row ? conformance::time_case(device, op_case, *row, kSeconds) : conformance::Timing{};
}

/// The most time that time_case() takes: two runs of each of eight copies, and twenty.
double seconds_of_runs(const conformance::Timing& timing) { return timing.median_ms / 1000 * 36; }

}  // namespace

double rate(uint64_t amount, const conformance::Timing& timing) {
  return timing.median_ms > 0 ? static_cast<double>(amount) / (timing.median_ms / 1000) : 0;
}

void measure_growing(size_t sizes, double growth, double most_seconds,
                     const std::function<double(size_t)>& measure) {
  double used = 0;
  for (size_t size = 0; size < sizes; ++size) {
    const double took = measure(size);
    used += took;
    if (used + took * growth > most_seconds) return;
  }
}

double measure_bandwidth(Device& device) {
  // Small tensors stay in a cache: the largest sum that was measured counts.
  constexpr uint64_t kSmallest = 1u << 16;
  double bandwidth = 0;
  measure_growing(5, 4, kMostSeconds, [&](size_t size) {
    const auto sum = time_chosen(device, Op::kElementwise, {kSmallest << (2 * size)},
                                 {DataType::kF32, DataType::kF32});
    bandwidth = rate(sum.work.bytes, sum);
    return seconds_of_runs(sum);
  });
  return bandwidth;
}

Peaks measure_peaks(Device& device) {
  Peaks peaks{.bytes_per_second = measure_bandwidth(device)};
  const bool hardware = device.capabilities().has(kGpu);
  const uint64_t smallest = hardware ? 256 : 128;
  for (DataType weight : {DataType::kF32, DataType::kF16}) {
    measure_growing(hardware ? 5 : 3, 8, kMostSeconds, [&](size_t size) {
      const uint64_t side = smallest << size;
      const auto product =
          time_chosen(device, Op::kMatmul, {side, side, side}, {DataType::kF32, weight});
      peaks.flops_per_second = std::max(peaks.flops_per_second, rate(product.work.flops, product));
      return seconds_of_runs(product);
    });
  }
  return peaks;
}

}  // namespace mulciber::apps
