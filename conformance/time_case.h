// Times one case on one row.
#pragma once

#include "conformance/op_case.h"

namespace mulciber::conformance {

struct Timing {
  double median_ms = 0;
  double spread_ms = 0;  // interquartile range
  Work work;             // per run
  uint32_t dispatches = 0;
};
/// Times one case on one row by timestamps, or by the CPU's clock over many replays where the
/// device has none; medians over at least `min_seconds`. Where a single run takes longer than that,
/// GPUs use one copy of the case, and no sample begins after ten times as long.
Timing time_case(Device& device, const OpCase& op_case, const Kernel& row, double min_seconds);

}  // namespace mulciber::conformance
