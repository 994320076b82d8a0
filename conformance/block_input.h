// Inputs in block types: random rows in the device's layout, and what they mean in double
// precision.
#pragma once

#include "conformance/bounds.h"
#include "conformance/op_case.h"

namespace mulciber::conformance {

/// Values whose size is about `deviation`; with `whole`, whole numbers up to some hundreds, so that
/// short sums of products are exact. Columns must be whole blocks.
CaseInput block_input(Shape shape, DataType type, double deviation, bool whole);

/// Whether a row's type stands for block types.
inline bool of_blocks(DataType row_type) {
  return row_type == DataType::kBlocks || row_type == DataType::kGrids;
}

/// Whether a type is on the short list: each arrangement of integers, codes and scales is in one of
/// those that are.
bool covers_blocks(DataType type);

/// Rows of the layout in words (shaders/include/blocks.h) as numbers: the definition that kernels
/// are held to. `sizes`: of each value, the magnitudes of the two numbers it is the sum of, added
/// up.
void read_blocks(DataType type, uint64_t columns, std::span<const uint32_t> words,
                 std::vector<double>& values, std::vector<double>& sizes);

/// What q8_0 makes of 32 numbers: `scale` * round(x / scale), scale the largest magnitude over 127,
/// in f16; bounds as ggml's order of operations in f32 has them, and where rounding may go either
/// way a whole step.
std::vector<Bounded> q8_0_reference(std::span<const Bounded> block);

/// Puts numbers into blocks of a q8_0 tensor of an output: `columns`, of whole blocks, from element
/// `first` on.
void put_q8_0(HostTensor& output, size_t first, std::span<const Bounded> columns);

}  // namespace mulciber::conformance
