// Sequences of a batch packed one after the other, without padding.
#pragma once

#include <optional>

#include "ops/control.h"
#include "runtime/program.h"

namespace mulciber {

/// Sequences of unequal lengths as one sequence of all their tokens: layers that work on single
/// tokens then compute no padding. Attention, which keeps sequences apart, reads them from a
/// rectangle as long as the longest sequence. Source: Zhai et al. 2022 (ByteTransformer),
/// arXiv:2210.03052, section III.D.
struct Packing {
  Tensor control;                 // u32
  ControlArray<uint32_t> tokens;  // (rows, length): the token for each position of the rectangle
  ControlArray<uint32_t> places;  // (packed): the position of each token in the rectangle
  uint32_t rows = 1, length = 1;  // the rectangle's extents
  uint32_t packed() const { return places.count; }

  /// x: (1, packed, columns) f32 or f16. Result: (rows, length, columns) of its type; padding
  /// positions hold the token that `tokens` names for them. Throws ShapeError naming the layer.
  Tensor spread(ProgramBuilder& builder, const Tensor& x) const;
  /// The inverse of spread(). x: (rows, length, columns). Result: (1, packed, columns).
  Tensor pack(ProgramBuilder& builder, const Tensor& x) const;
};

}  // namespace mulciber
