// Softmax of a few values on the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace mulciber {

/// Computes a softmax in double precision. values: at least one.
inline std::vector<double> cpu_softmax(std::span<const float> values) {
  const double largest = *std::max_element(values.begin(), values.end());
  std::vector<double> shares;
  double sum = 0;
  for (const float value : values) {
    shares.push_back(std::exp(value - largest));
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace mulciber
