// Cosine similarity of vectors, on the device.
#pragma once

#include <span>
#include <vector>

#include "runtime/program.h"

namespace mulciber {

/// Returns (queries, vectors) row-major; 0 for a vector of zeros. Vectors are uploaded in parts of
/// bounded size. Throws ModelError when lengths differ.
std::vector<float> vector_cosines(Device& device, std::span<const std::span<const float>> queries,
                                  std::span<const std::span<const float>> vectors);

/// Adds to a program the division of every row of x, (rows, D) f32, by its length.
Tensor unit_length(ProgramBuilder& builder, const Tensor& x);

}  // namespace mulciber
