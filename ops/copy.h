// Copies between tensors: columns side by side, words one after another.
#pragma once

#include <span>

#include "runtime/program.h"

namespace mulciber {

struct CopyOptions {
  uint32_t first_column = 0;  // first column of x
  uint32_t columns = 0;       // 0: all from first_column on
  uint32_t into_column = 0;
  /// Number of blocks of these columns in each row, and their distances in x and in `into`: one
  /// block per head. x_step 0: one block of x for all.
  uint32_t blocks = 1, x_step = 0, into_step = 0;
};

/// Copies columns of every row of x into columns of `into`, bit by bit. x: (..., columns) with as
/// many rows as `into`, or with a single row, which goes to every row; elements of both have equal
/// size. Halves are copied in pairs: columns and offsets of f16 tensors are even. Throws ShapeError
/// naming the layer.
void copy_columns(ProgramBuilder& builder, const Tensor& x, const Tensor& into,
                  const CopyOptions& options = {});

/// Returns the 32-bit words of all tensors, one after another, as one u32 tensor, which attention
/// reads as control.
Tensor concatenate_words(ProgramBuilder& builder, std::span<const Tensor> parts);

}  // namespace mulciber
