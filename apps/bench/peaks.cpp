#include "apps/bench/peaks.h"

#include "runtime/op.h"

#include <algorithm>

namespace mulciber::apps {
namespace {

constexpr double kSeconds = 0.3;  // for each of the three measurements

conformance::Timing time_chosen(Device& device, Op op, std::vector<uint64_t> shape,
                                KernelTypes types) {
  conformance::OpCase op_case = conformance::op_cases(op).make(shape, types);
  const Kernel* row = conformance::chosen_row(device.capabilities(), op_case, op);
  return row ? conformance::time_case(device, op_case, *row, kSeconds) : conformance::Timing{};
}

}  // namespace

double rate(uint64_t amount, const conformance::Timing& timing) {
  return timing.median_ms > 0 ? static_cast<double>(amount) / (timing.median_ms / 1000) : 0;
}

Peaks measure_peaks(Device& device) {
  Peaks peaks;
  const auto sum =
      time_chosen(device, Op::kElementwise, {16u << 20}, {DataType::kF32, DataType::kF32});
  peaks.bytes_per_second = rate(sum.work.bytes, sum);
  const uint64_t size = device.capabilities().has(kGpu) ? 4096 : 512;
  for (DataType weight : {DataType::kF32, DataType::kF16}) {
    const auto product =
        time_chosen(device, Op::kMatmul, {size, size, size}, {DataType::kF32, weight});
    peaks.flops_per_second = std::max(peaks.flops_per_second, rate(product.work.flops, product));
  }
  return peaks;
}

}  // namespace mulciber::apps
