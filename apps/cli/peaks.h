// What a device reaches, measured in this run: the base of floors.
#pragma once

#include <cstddef>
#include <functional>

#include "conformance/time_case.h"

namespace mulciber::apps {

struct Peaks {
  double bytes_per_second = 0;  // read and written, by adding two tensors of 64 MiB at most
  double flops_per_second = 0;  // by the best large matrix product
};

/// Amount per second of a timing; 0 for one that was not taken.
double rate(uint64_t amount, const conformance::Timing& timing);

/// Measures sizes 0, 1, ... `sizes` - 1, each of which takes `growth` times as long as the one
/// before, up to the last or the first that would not come to its end within `most_seconds` in all.
/// measure: of a size; gives the seconds that it took.
void measure_growing(size_t sizes, double growth, double most_seconds,
                     const std::function<double(size_t)>& measure);

/// Bytes per second of memory alone. Runs take at most about two seconds, however slow the device
/// is: it is measured by the largest tensors that this is enough for.
double measure_bandwidth(Device& device);
/// That and the products, for which as long is taken with weights of each type.
Peaks measure_peaks(Device& device);

}  // namespace mulciber::apps
