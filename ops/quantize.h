// Activations in blocks of 8-bit integers, which products with integer dot products take.
#pragma once

#include "runtime/program.h"

namespace mulciber {

/// x in q8_1 (shaders/include/blocks.h): of every 32 columns the scale is the largest magnitude
/// over 127, and each value an integer times it. For what the op that made x could not write so
/// itself. x: (..., columns) f32, of whole blocks. Throws ShapeError naming the layer.
Tensor quantize(ProgramBuilder& builder, const Tensor& x);

/// Whether a product of so many rows should be one of integers, where it may be. From nine rows on
/// matrix units are faster, where there are any: for a Radeon RX 7900 XTX the compiler makes 0.3
/// instructions of a multiply-add of halves with them, and 0.55 with integer dot products.
bool integers_pay(const Capabilities& device, uint64_t rows);

}  // namespace mulciber
