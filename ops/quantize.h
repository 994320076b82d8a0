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
/// instructions of a multiply-add of halves with them, and 0.55 with integer dot products. Matrices
/// of integers pay where they are twice as deep as those of halves: scales are applied to the sums
/// of every block, which costs more than it saves where an instruction multiplies no more integers
/// than halves. A step of 32 columns of K of a tile with q4_0 weights takes so many instructions,
/// with halves and with integers: 396 and 457 on that Radeon, 302 and 458 on an RX 9070 XT, 400 and
/// 380 on an Arc B580.
bool integers_pay(const Capabilities& device, uint64_t rows);

}  // namespace mulciber
