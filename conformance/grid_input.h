// Inputs in block types that refer to tables (shaders/include/grids.h), for block_input.h.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "base/data_type.h"

namespace mulciber::conformance {

/// One row in words as numbers: the definition that kernels are held to.
std::vector<double> read_grid_row(DataType type, uint64_t columns, std::span<const uint32_t> words);

/// A random row, of values as block_input() gives them. words: zeros.
void draw_grid_row(DataType type, uint64_t columns, double deviation, bool whole,
                   std::span<uint32_t> words, std::mt19937& random);

}  // namespace mulciber::conformance
