// Layer norm, root-mean-square norm and softmax in double precision, with bounds.
#pragma once

#include <span>

#include "conformance/bounds.h"

namespace mulciber::conformance {

/// x, residual (or null): (..., D); gain_bias: (2, D), gain first.
HostTensor layer_norm_reference(const HostTensor& x, const HostTensor& gain_bias,
                                const HostTensor* residual, double epsilon);

/// The norm of a row of values, without gain: value / sqrt(mean(value^2) + epsilon).
void rms_norm_reference(std::span<Bounded> row, double epsilon);

/// Appends to y the row of a row of x of which `visible` columns count.
void softmax_reference(std::span<const double> x, uint64_t visible, double scale, bool logarithm,
                       HostTensor& y);

/// Columns at the edges of what invocations, subgroups and workgroups take at a time: such rows
/// stand in the suite's short list.
bool edge_of_a_unit(uint64_t columns);

}  // namespace mulciber::conformance
