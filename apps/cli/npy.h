// Writes vectors in NumPy's format.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mulciber::apps {

/// Writes a NumPy file of version 1.0: (rows, columns) float32 in C order. Throws ModelError when
/// it cannot be written.
void write_npy(const std::string& path, std::span<const std::vector<float>> rows, size_t columns);

}  // namespace mulciber::apps
