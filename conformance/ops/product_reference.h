// The double-precision matrix product with a bound on each of its sums.
#pragma once

#include <vector>

#include "conformance/bounds.h"

namespace mulciber::conformance {

/// x W^T + bias, element by element. x: (..., K); w: (N, K); bias: (N) or null. The arguments must
/// outlive this object.
class Product {
 public:
  Product(const CpuTensor& x, const CpuTensor& w, const CpuTensor* bias,
          const Arithmetic& arithmetic);
  /// The product of row i of x and row j of W.
  Bounded at(uint64_t i, uint64_t j) const;

 private:
  double lost_in_halves(const double* x, const double* w) const;

  const CpuTensor &x_, &w_;
  const CpuTensor* bias_;
  uint64_t depth_;
  double grain_;
  bool half_sums_;
  // Errors of operands that are rounded before the product or inexact already; may be empty.
  std::vector<double> x_error_, w_error_;
};

}  // namespace mulciber::conformance
