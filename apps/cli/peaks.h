// Peak rates of a device, measured in this run: the base of floors.
#pragma once

#include <cstddef>
#include <functional>

#include "conformance/time_case.h"

namespace mulciber::apps {

struct Peaks {
  double bytes_per_second = 0;  // read and written, when two tensors of at most 64 MiB are added
  double flops_per_second = 0;  // by the fastest large matrix product
};

/// The rate of a timing; 0 for one that was not taken.
double rate(uint64_t amount, const conformance::Timing& timing);

/// Measures sizes 0, 1, ... `sizes` - 1, each of which takes `growth` times as long as the one
/// before, up to the last or the first that would not end within `most_seconds` in all. measure:
/// measures a size; returns the seconds that it took.
void measure_growing(size_t sizes, double growth, double most_seconds,
                     const std::function<double(size_t)>& measure);

/// The memory bandwidth alone, in bytes per second. Runs take at most about two seconds, however
/// slow the device is: it is measured with the largest tensors for which this suffices.
double measure_bandwidth(Device& device);
/// The bandwidth and the products' rates; for products as much time is taken with weights of each
/// type.
Peaks measure_peaks(Device& device);

}  // namespace mulciber::apps
