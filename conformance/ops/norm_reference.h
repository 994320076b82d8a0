// Layer norm, root-mean-square norm and softmax in double precision, with bounds.
#pragma once

#include <span>

#include "conformance/bounds.h"

namespace mulciber::conformance {

/// x, residual (or null): (..., D); gain_bias: (2, D), gain first.
CpuTensor layer_norm_reference(const CpuTensor& x, const CpuTensor& gain_bias,
                               const CpuTensor* residual, double epsilon);

/// Normalizes a row of values, without gain: value / sqrt(mean(value^2) + epsilon).
void rms_norm_reference(std::span<Bounded> row, double epsilon);

/// Appends to y the softmax of a row of x, of which `visible` columns count.
void softmax_reference(std::span<const double> x, uint64_t visible, double scale, bool logarithm,
                       CpuTensor& y);

/// Whether a number of columns is at the edge of what an invocation, a subgroup or a workgroup
/// processes at a time; such rows are on the suite's short list.
bool edge_of_a_unit(uint64_t columns);

}  // namespace mulciber::conformance
