#include "conformance/ops/product_reference.h"

#include <algorithm>
#include <cmath>

namespace mulciber::conformance {

Product::Product(const HostTensor& x, const HostTensor& w, const HostTensor* bias, const Arithmetic& arithmetic)
    : x_(x), w_(w), bias_(bias), depth_(w.shape.columns()), grain_(grain_of(x.values) * grain_of(w.values)) {
  if (bias) grain_ = std::min(grain_, grain_of(bias->values));
  x_error_ = x.bounds;
  // Matrix units take halves; only rows with weights in f16 use them.
  if (arithmetic.half_operands && w.type == DataType::kF16 && x.type == DataType::kF32) {
    x_error_.resize(x.values.size());
    for (size_t i = 0; i < x.values.size(); ++i) {
      x_error_[i] += stored_error(DataType::kF16, x.values[i], x_error_[i]);
    }
  }
  if (std::all_of(x_error_.begin(), x_error_.end(), [](double e) { return e == 0; })) x_error_.clear();
}

Bounded Product::at(uint64_t i, uint64_t j) const {
  const double *x = &x_.values[i * depth_], *w = &w_.values[j * depth_];
  // Four sums side by side, for the compiler's vectors.
  double sums[4] = {}, sizes[4] = {};
  uint64_t p = 0;
  for (; p + 4 <= depth_; p += 4) {
    for (uint64_t lane = 0; lane < 4; ++lane) {
      const double product = x[p + lane] * w[p + lane];
      sums[lane] += product;
      sizes[lane] += std::fabs(product);
    }
  }
  for (; p < depth_; ++p) {
    sums[0] += x[p] * w[p];
    sizes[0] += std::fabs(x[p] * w[p]);
  }
  double value = (sums[0] + sums[1]) + (sums[2] + sums[3]), size = (sizes[0] + sizes[1]) + (sizes[2] + sizes[3]);
  if (bias_) {
    value += bias_->values[j];
    size += std::fabs(bias_->values[j]);
  }
  if (!x_error_.empty()) {
    const double* error = &x_error_[i * depth_];
    double sum = 0, squares = 0;
    for (p = 0; p < depth_; ++p) {
      const double e = std::fabs(error[p] * w[p]);
      sum += e;
      squares += e * e;
    }
    // Roundings of operands are independent of each other; errors they came with need not be.
    const double operands = x_.bounds.empty() ? independent_errors(sum, squares) : sum;
    return {value, operands + sum_error(static_cast<double>(depth_) + 2, size + sum)};
  }
  if (sums_exactly(grain_, size)) return value;
  // A product and an addition per term, and the bias.
  return {value, sum_error(static_cast<double>(depth_) + 2, size)};
}

}  // namespace mulciber::conformance
