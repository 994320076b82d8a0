// Activations in blocks (q8_1, shaders/include/blocks.h), in double precision.
#pragma once

#include "conformance/bounds.h"
#include "conformance/op_case.h"

namespace mulciber::conformance {

/// Blocks of any integers, whose values have a size of about `deviation`; with `whole`, of small
/// integers and scales of 1 and 2, so that short sums of products are exact.
CaseInput q8_1_input(Shape shape, double deviation, bool whole);

/// Rows of the layout in words as numbers: what products are held to. A block of which a sum is not
/// that of its integers is no number.
std::vector<double> read_q8_1(uint64_t columns, std::span<const uint32_t> words);

/// Appends a row to an output of that type: of every 32 numbers `scale` * round(x / scale), scale
/// the largest magnitude over 127; bounds as the order of operations in f32 has them, and where
/// rounding may go either way a whole step.
void append_q8_1(HostTensor& output, std::span<const Bounded> row);
/// The same of all rows of an output in f32.
HostTensor in_q8_1(const HostTensor& values);

}  // namespace mulciber::conformance
