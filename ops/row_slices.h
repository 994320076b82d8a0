// Splits tensors above a device's storage range, for ops that work row by row.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <numeric>

#include "mulciber/error.h"
#include "runtime/program.h"

namespace mulciber {

/// Most rows of `tensor` that one node may bind: all of them where one descriptor covers them.
inline uint64_t rows_per_node(const ProgramBuilder& builder, const Tensor& tensor) {
  if (tensor.bytes() <= builder.capabilities().max_storage_range) return tensor.shape.rows();
  return builder.rows_per_binding(row_bytes(tensor.type, tensor.shape.columns()));
}

/// Most rows, out of `all`, that one node may take, such that the slices of every tensor fit a
/// descriptor and begin aligned. `row_bytes`: bytes per row of each sliced tensor. Throws
/// ShapeError where even the fewest rows that begin aligned do not fit.
inline uint64_t rows_per_node(const ProgramBuilder& builder, const Kernel& kernel, uint64_t all,
                              std::initializer_list<uint64_t> row_bytes) {
  uint64_t rows = all;
  if (kernel.reflection.buffer_address) return rows;
  uint64_t step = 1;
  const uint64_t alignment = std::max<uint64_t>(builder.capabilities().storage_alignment, 256);
  for (uint64_t bytes : row_bytes) {
    if (bytes * all <= builder.capabilities().max_storage_range) continue;
    rows = std::min(rows, builder.rows_per_binding(bytes));
  }
  if (rows == all) return rows;
  for (uint64_t bytes : row_bytes) step = std::max(step, alignment / std::gcd(alignment, bytes));
  if (rows < step) {
    throw ShapeError(
        builder.path(),
        fmt::format("{} rows of keys are the least that can be bound, {} fit", step, rows),
        "use fewer or shorter rows, or a device with a larger storage range");
  }
  return rows / step * step;
}

/// Rows [first, first + count) of a (rows, length, columns) tensor.
inline Tensor slice_rows(const Tensor& tensor, uint64_t first, uint64_t count) {
  if (first == 0 && count == tensor.shape[0]) return tensor;
  return tensor.row_slice(first * tensor.shape[1], count * tensor.shape[1]);
}

/// Workgroups along x for `pieces` pieces of work; the shader loops over the rest.
inline uint32_t groups_for(const ProgramBuilder& builder, uint64_t pieces) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(pieces, 1, builder.capabilities().max_groups[0]));
}

}  // namespace mulciber
