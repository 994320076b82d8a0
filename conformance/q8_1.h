// Activations in blocks (q8_1, shaders/include/blocks.h), in double precision.
#pragma once

#include "conformance/bounds.h"
#include "conformance/op_case.h"

namespace mulciber::conformance {

/// Random blocks with values of size `deviation`; with `whole`, small integers and scales of 1 and
/// 2, so that short sums of products are exact.
CaseInput q8_1_input(Shape shape, double deviation, bool whole);

/// Decodes rows of the layout in words: the definition for products. A block with a wrong sum of
/// its integers gives NaN.
std::vector<double> read_q8_1(uint64_t columns, std::span<const uint32_t> words);

/// Appends a row to an output of that type: for every 32 numbers `scale` * round(x / scale), where
/// scale is the largest magnitude over 127. Bounds follow the order of operations in f32, plus a
/// whole step where rounding may go either way.
void append_q8_1(CpuTensor& output, std::span<const Bounded> row);
/// Converts all rows of an output in f32.
CpuTensor in_q8_1(const CpuTensor& values);

}  // namespace mulciber::conformance
