#include "conformance/ops/norm_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/bounds.h"

namespace mulciber::conformance {

namespace {

// Computes 1 / sqrt(mean(value^2) + epsilon).
Bounded inverse_root_mean_square(std::span<const Bounded> values, double epsilon) {
  const auto n = static_cast<double>(values.size());
  double squares = 0, error = 0;
  for (const Bounded& value : values) {
    squares += value.value * value.value;
    error += (2 * std::fabs(value.value) + value.error) * value.error;
  }
  const Bounded mean = Bounded(squares, error + sum_error(n + 2, squares)) / Bounded(n);
  const Bounded root = Bounded(1) / inverse_sqrt(mean + Bounded(epsilon));  // sqrt as specified
  return Bounded(1) / root;
}

}  // namespace

void rms_norm_reference(std::span<Bounded> row, double epsilon) {
  const Bounded scale = inverse_root_mean_square(row, epsilon);
  for (Bounded& value : row) value = value * scale;
}

CpuTensor layer_norm_reference(const CpuTensor& x, const CpuTensor& gain_bias,
                               const CpuTensor* residual, double epsilon) {
  const uint64_t columns = x.shape.columns();
  const auto n = static_cast<double>(columns);
  const auto at = [](const CpuTensor& tensor, uint64_t index) {
    return Bounded(tensor.values[index], tensor.bounds.empty() ? 0 : tensor.bounds[index]);
  };
  CpuTensor y{x.shape, x.type, {}, {}};
  std::vector<Bounded> values(columns);
  for (uint64_t row = 0; row < x.shape.rows(); ++row) {
    for (uint64_t i = 0; i < columns; ++i) {
      values[i] = at(x, row * columns + i);
      if (residual) values[i] = values[i] + at(*residual, row * columns + i);
    }
    // The mean is computed from differences to one element, so that a common offset costs no
    // accuracy.
    const Bounded origin(values[0].value);
    double sum = 0, size = 0, error = 0;
    for (Bounded& value : values) {
      value = value - origin;
      sum += value.value;
      size += std::fabs(value.value);
      error += value.error;
    }
    const Bounded mean = Bounded(sum, error + sum_error(n, size)) / Bounded(n);
    for (Bounded& value : values) value = value - mean;
    const Bounded scale = inverse_root_mean_square(values, epsilon);
    for (uint64_t i = 0; i < columns; ++i) {
      append(y, values[i] * scale * Bounded(gain_bias.values[i]) +
                    Bounded(gain_bias.values[columns + i]));
    }
  }
  return y;
}

void softmax_reference(std::span<const double> x, uint64_t visible, double scale, bool logarithm,
                       CpuTensor& y) {
  std::vector<Bounded> terms(visible);
  Bounded maximum(-kInfinity);
  for (uint64_t i = 0; i < visible; ++i) {
    terms[i] = Bounded(x[i]) * Bounded(scale);
    maximum = max(maximum, terms[i]);
  }
  const bool any = maximum.value > -kInfinity;
  double sum = 0, error = 0;
  for (uint64_t i = 0; i < visible && any; ++i) {
    const Bounded weight = exp(terms[i] - maximum);
    sum += weight.value;
    error += weight.error;
    if (!logarithm) terms[i] = weight;
  }
  const Bounded total(sum, error + sum_error(static_cast<double>(visible), sum));
  const Bounded shift = any && logarithm ? maximum + log(total) : Bounded();
  for (uint64_t i = 0; i < x.size(); ++i) {
    if (i >= visible || !any) {
      append(y, logarithm ? Bounded(-kInfinity) : Bounded(0));
    } else {
      append(y, logarithm ? terms[i] - shift : terms[i] * (Bounded(1) / total));
    }
  }
}

bool edge_of_a_unit(uint64_t columns) {
  constexpr uint64_t kEdges[] = {1, 3, 4, 31, 33, 64, 127, 129, 256, 1021};
  return std::ranges::find(kEdges, columns) != std::end(kEdges);
}

}  // namespace mulciber::conformance
