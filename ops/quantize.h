// Activations in blocks of 8-bit integers, the operands of integer dot products.
#pragma once

#include "runtime/program.h"

namespace mulciber {

/// Quantizes x to q8_1 (shaders/include/blocks.h): for every 32 columns the scale is the largest
/// magnitude over 127, and each value an integer times it. Used where the op that made x cannot
/// write q8_1 itself. x: (..., columns) f32, of whole blocks. Throws ShapeError naming the layer.
Tensor quantize(ProgramBuilder& builder, const Tensor& x);

/// Whether a product with `rows` rows should use integers, where it may. From nine rows on matrix
/// units are faster, where there are any: a multiply-add of halves takes 0.3 instructions with them
/// and 0.55 with integer dot products, as compiled for a Radeon RX 7900 XTX. Integer matrices pay
/// where they are twice as deep as those of halves: scales are applied to the sums of every block,
/// which costs more than it saves where an instruction multiplies no more integers than halves.
/// Instructions of a tile's step of 32 columns of K with q4_0 weights, with halves and with
/// integers: 396 and 457 on that Radeon, 302 and 458 on an RX 9070 XT, 400 and 380 on an Arc B580.
bool integers_pay(const Capabilities& device, uint64_t rows);

}  // namespace mulciber
