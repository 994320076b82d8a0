// Softmax of a few numbers on the host.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace mulciber {

/// values: at least one. In double precision.
inline std::vector<double> host_softmax(std::span<const float> values) {
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
