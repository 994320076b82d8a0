// The double-precision matrix product with a bound on each of its sums.
#pragma once

#include <vector>

#include "conformance/bounds.h"

namespace mulciber::conformance {

/// x W^T + bias, element by element. x: (..., K); w: (N, K); bias: (N) or null. They must outlive
/// this.
class Product {
 public:
  Product(const HostTensor& x, const HostTensor& w, const HostTensor* bias,
          const Arithmetic& arithmetic);
  /// Row i of x with row j of W.
  Bounded at(uint64_t i, uint64_t j) const;

 private:
  double lost_in_halves(const double* x, const double* w) const;

  const HostTensor &x_, &w_;
  const HostTensor* bias_;
  uint64_t depth_;
  double grain_;
  bool half_sums_;
  // Of operands that reach the product rounded, or off already; or empty.
  std::vector<double> x_error_, w_error_;
};

}  // namespace mulciber::conformance
