// Copies between tensors: columns side by side, words one after another.
#pragma once

#include <span>

#include "runtime/program.h"

namespace mulciber {

struct CopyOptions {
  uint32_t first_column = 0;  // of x
  uint32_t columns = 0;       // 0: all from first_column on
  uint32_t into_column = 0;
  /// So many blocks of these columns in each row, so far apart in x and in `into`: a head's each.
  /// x_step 0: one block for all.
  uint32_t blocks = 1, x_step = 0, into_step = 0;
};

/// Copies columns of every row of x into columns of `into`, bit by bit. x: (rows or 1, ...) rows in
/// all, `into`: (rows, ...), of the same size of element; a single row goes to every row. Halves go
/// in pairs: columns and offsets of f16 tensors are even. Throws ShapeError naming the layer.
void copy_columns(ProgramBuilder& builder, const Tensor& x, const Tensor& into,
                  const CopyOptions& options = {});

/// The 32-bit words of all tensors, one after another, as one u32 tensor: what attention reads as
/// control.
Tensor concatenate_words(ProgramBuilder& builder, std::span<const Tensor> parts);

}  // namespace mulciber
