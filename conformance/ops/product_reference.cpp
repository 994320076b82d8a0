#include "conformance/ops/product_reference.h"

#include <algorithm>
#include <cmath>

#include "base/blocks.h"
#include "shaders/matmul.h"

namespace mulciber::conformance {

namespace {

/// steps: by how many of the type's steps rounding may be off.
void round_operand(DataType type, double steps, const CpuTensor& tensor,
                   std::vector<double>& errors) {
  errors.resize(tensor.values.size());
  for (size_t i = 0; i < errors.size(); ++i)
    errors[i] += steps * stored_error(type, tensor.values[i], errors[i]);
  if (std::all_of(errors.begin(), errors.end(), [](double e) { return e == 0; })) errors.clear();
}

}  // namespace

Product::Product(const CpuTensor& x, const CpuTensor& w, const CpuTensor* bias,
                 const Arithmetic& arithmetic)
    : x_(x),
      w_(w),
      bias_(bias),
      depth_(w.shape.columns()),
      grain_(grain_of(x.values) * grain_of(w.values)),
      half_sums_(arithmetic.half_sums && x.type == DataType::kF16 && w.type == DataType::kF16) {
  if (bias) grain_ = std::min(grain_, grain_of(bias->values));
  x_error_ = x.bounds;
  // Matrix units take halves, or integers unchanged; rows with weights in f32 never use them.
  // Kernels round to bf16 by integer arithmetic, to the nearest; drivers round to halves.
  if (arithmetic.bf16_operands && w.type == DataType::kBF16 && x.type == DataType::kF32) {
    round_operand(DataType::kBF16, 0.5, x, x_error_);
  } else if (arithmetic.half_operands && w.type != DataType::kF32 && x.type != DataType::kQ8_1) {
    if (x.type == DataType::kF32) round_operand(DataType::kF16, 1, x, x_error_);
    if (w.type != DataType::kF16) round_operand(DataType::kF16, 1, w, w_error_);
  }
  if (std::all_of(x_error_.begin(), x_error_.end(), [](double e) { return e == 0; }))
    x_error_.clear();
}

/// The error of products and sums in f16 before they are added to a sum in f32. A product is
/// rounded once, and so is each sum of up to HALF_SUM_DEPTH of them, in any order; none is larger
/// than the magnitudes of all of them, and one below the normal numbers may be taken for zero.
double Product::lost_in_halves(const double* x, const double* w) const {
  double sum = 0, squares = 0;
  const auto add = [&](double error, int times) {
    sum += times * error;
    squares += times * error * error;
  };
  for (uint64_t first = 0; first < depth_; first += HALF_SUM_DEPTH) {
    double magnitude = 0;
    for (uint64_t p = first; p < std::min<uint64_t>(first + HALF_SUM_DEPTH, depth_); ++p) {
      add(stored_error(DataType::kF16, x[p] * w[p], 0), 1);
      magnitude += std::fabs(x[p] * w[p]);
    }
    const bool exact = grain_ >= kSmallest16 && magnitude <= 0x1p11 * grain_;
    const double rounding = std::max(ulp16(magnitude), std::min(magnitude, kSmallest16));
    if (!exact) add(rounding, HALF_SUM_DEPTH - 1);
  }
  return independent_errors(sum, squares);
}

Bounded Product::at(uint64_t i, uint64_t j) const {
  const double *x = &x_.values[i * depth_], *w = &w_.values[j * depth_];
  // A weight in blocks is a sum of two numbers, which a kernel may multiply separately. If x is in
  // blocks too, offsets are subtracted from sums of integers, which is exact.
  const bool whole_offset = x_.type == DataType::kQ8_1 && BLOCKS_OFFSET(block_format(w_.type)) != 0;
  const double* w_sizes = w_.sizes.empty() || whole_offset ? nullptr : &w_.sizes[j * depth_];
  auto size_of_term = [&](uint64_t p, double product) {
    return std::fabs(w_sizes ? x[p] * w_sizes[p] : product);
  };
  // Four independent sums let the compiler use vectors.
  double sums[4] = {}, sizes[4] = {};
  uint64_t p = 0;
  for (; p + 4 <= depth_; p += 4) {
    for (uint64_t lane = 0; lane < 4; ++lane) {
      const double product = x[p + lane] * w[p + lane];
      sums[lane] += product;
      sizes[lane] += size_of_term(p + lane, product);
    }
  }
  for (; p < depth_; ++p) {
    sums[0] += x[p] * w[p];
    sizes[0] += size_of_term(p, x[p] * w[p]);
  }
  double value = (sums[0] + sums[1]) + (sums[2] + sums[3]),
         size = (sizes[0] + sizes[1]) + (sizes[2] + sizes[3]);
  if (bias_) {
    value += bias_->values[j];
    size += std::fabs(bias_->values[j]);
  }
  if (!x_error_.empty() || !w_error_.empty()) {
    const double* x_error = x_error_.empty() ? nullptr : &x_error_[i * depth_];
    const double* w_error = w_error_.empty() ? nullptr : &w_error_[j * depth_];
    double sum = 0, squares = 0;
    for (p = 0; p < depth_; ++p) {
      const double ex = x_error ? x_error[p] : 0, ew = w_error ? w_error[p] : 0;
      const double e = ex * std::fabs(w[p]) + (std::fabs(x[p]) + ex) * ew;
      sum += e;
      squares += e * e;
    }
    // Roundings of operands are independent of each other; their earlier errors need not be.
    const double operands = x_.bounds.empty() ? independent_errors(sum, squares) : sum;
    // Matrix units take whole weights; other rows may treat the second number of a weight as
    // further terms.
    const bool in_two = w_sizes && !x_.bounds.empty();
    const double terms = static_cast<double>(depth_) * (in_two ? 2 : 1) + 2;
    return {value, operands + sum_error(terms, size + sum)};
  }
  if (half_sums_) {
    const double lost = lost_in_halves(x, w);
    if (lost > 0)
      return {value, lost + sum_error(static_cast<double>(depth_) / 4 + 2, size + lost)};
  }
  if (sums_exactly(grain_, size)) return value;
  // A term has a product and an addition, and there is the bias; in blocks the minima are further
  // terms. With both operands in blocks, integers are summed exactly over 16 or 32 columns, and a
  // block of 32 adds at most twice to the sum: for each half, or for the products and the minimum.
  // A term is rounded six more times: its scale, the scale times the sum, the addition of the
  // halves, x's scale, the bias and y.
  const auto depth = static_cast<double>(depth_);
  const double terms = x_.type == DataType::kQ8_1 ? depth / 16 + 6 : depth * (w_sizes ? 2 : 1) + 2;
  return {value, sum_error(terms, size)};
}

}  // namespace mulciber::conformance
