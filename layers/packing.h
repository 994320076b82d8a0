// Sequences of a batch one after the other, with nothing between them.
#pragma once

#include <optional>

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// Sequences of unequal lengths as one, of as many tokens as they have together: what works on
/// tokens one by one has no padding to work on. Attention, which keeps sequences apart, reads them
/// from a rectangle as long as the longest. Source: Zhai et al. 2022 (ByteTransformer),
/// arXiv:2210.03052, section III.D.
struct Packing {
  Tensor control;                 // u32
  ControlArray<uint32_t> tokens;  // (rows, length): the token at each place of the rectangle
  ControlArray<uint32_t> places;  // (packed): the place of each token
  uint32_t rows = 1, length = 1;  // of the rectangle
  uint32_t packed() const { return places.count; }

  /// x: (1, packed, columns) f32 or f16. Result: (rows, length, columns) of its type; at a place of
  /// no token stands whatever token `tokens` names there. Throws ShapeError naming the layer.
  Tensor spread(ProgramBuilder& builder, const Tensor& x) const;
  /// The way back. x: (rows, length, columns). Result: (1, packed, columns).
  Tensor pack(ProgramBuilder& builder, const Tensor& x) const;
};

}  // namespace mulciber
