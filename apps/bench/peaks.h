// What a device reaches, measured in this run: the base of floors.
#pragma once

#include "conformance/time_case.h"

namespace mulciber::apps {

struct Peaks {
  double bytes_per_second = 0;  // read and written, by adding two tensors of 64 MiB
  double flops_per_second = 0;  // by the best large matrix product
};

/// Amount per second of a timing; 0 for one that was not taken.
double rate(uint64_t amount, const conformance::Timing& timing);

/// Takes about a second on a software driver.
Peaks measure_peaks(Device& device);

}  // namespace mulciber::apps
