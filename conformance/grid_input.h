// Inputs in block types that refer to tables (shaders/include/grids.h), for block_input.h.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "base/data_type.h"

namespace mulciber::conformance {

/// Decodes one row: the definition for kernels.
std::vector<double> read_grid_row(DataType type, uint64_t columns, std::span<const uint32_t> words);

/// Draws a random row with values like block_input()'s. words: zeros.
void draw_grid_row(DataType type, uint64_t columns, double deviation, bool whole,
                   std::span<uint32_t> words, std::mt19937& random);

}  // namespace mulciber::conformance
