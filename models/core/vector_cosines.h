// Cosines of the angles between vectors, on the device.
#pragma once

#include <span>
#include <vector>

#include "runtime/program.h"

namespace mulciber {

/// Result: (queries, vectors) row-major; 0 where a vector is all zeros. Vectors go to the device in
/// parts of bounded size. Throws ModelError where not all are of one length.
std::vector<float> vector_cosines(Device& device, std::span<const std::span<const float>> queries,
                                  std::span<const std::span<const float>> vectors);

/// Adds to a program: every row of x, (rows, D) f32, divided by its length.
Tensor unit_length(ProgramBuilder& builder, const Tensor& x);

}  // namespace mulciber
