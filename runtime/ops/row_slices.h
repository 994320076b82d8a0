// Splitting what is above a device's storage range, for ops that work row by row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/program.h"

namespace mulciber {

/// Most rows of `tensor` that one node may bind: all of them where one descriptor covers them.
inline uint64_t rows_per_node(const ProgramBuilder& builder, const Tensor& tensor) {
  if (tensor.bytes() <= builder.capabilities().max_storage_range) return tensor.shape.rows();
  return builder.rows_per_binding(row_bytes(tensor.type, tensor.shape.columns()));
}

/// Workgroups along x for so many pieces of work; the shader loops over what is left.
inline uint32_t groups_for(const ProgramBuilder& builder, uint64_t pieces) {
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(pieces, 1, builder.capabilities().max_groups[0]));
}

/// Most rows of `tensor` for a node with one workgroup per row. Slices of 128 rows are aligned anyway.
inline uint64_t rows_per_grid(const ProgramBuilder& builder, const Tensor& tensor) {
  uint64_t groups = builder.capabilities().max_groups[0];
  uint64_t rows = rows_per_node(builder, tensor);
  return rows <= groups ? rows : std::min(rows, groups / 128 * 128);
}

}  // namespace mulciber
