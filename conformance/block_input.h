// Inputs in block types: random rows in the device's layout, and their values in double precision.
#pragma once

#include "conformance/bounds.h"
#include "conformance/op_case.h"

namespace mulciber::conformance {

/// Random blocks with values of size `deviation`; with `whole`, whole numbers up to some hundreds,
/// so that short sums of products are exact. Columns must be whole blocks.
CaseInput block_input(Shape shape, DataType type, double deviation, bool whole);

/// Whether a kernel row's type stands for block types.
inline bool of_blocks(DataType row_type) {
  return row_type == DataType::kBlocks || row_type == DataType::kGrids;
}

/// Whether a type is on the short list: its types cover each arrangement of integers, codes and
/// scales.
bool covers_blocks(DataType type);

/// Decodes rows of the layout in words (shaders/include/blocks.h): the definition for kernels.
/// `sizes`: for each value, the magnitudes of the two numbers whose sum it is, added up.
void read_blocks(DataType type, uint64_t columns, std::span<const uint32_t> words,
                 std::vector<double>& values, std::vector<double>& sizes);

/// Quantizes 32 numbers to q8_0: `scale` * round(x / scale), where scale is the largest magnitude
/// over 127, in f16. Bounds follow ggml's order of operations in f32, plus a whole step where
/// rounding may go either way.
std::vector<Bounded> q8_0_reference(std::span<const Bounded> block);

/// Writes numbers into blocks of a q8_0 output: `columns`, of whole blocks, from element `first`
/// on.
void put_q8_0(CpuTensor& output, size_t first, std::span<const Bounded> columns);

}  // namespace mulciber::conformance
