// Splitting what is above a device's storage range, for ops that work row by row.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

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

/// Most rows of `tensor` for a node with one workgroup per row. Throws ShapeError when the device allows so few
/// workgroups that the next slice would begin where no binding may.
inline uint64_t rows_per_grid(const ProgramBuilder& builder, const Tensor& tensor) {
  const uint64_t groups = builder.capabilities().max_groups[0], rows = rows_per_node(builder, tensor);
  if (rows <= groups) return rows;
  constexpr uint64_t kAlignment = 256;  // the largest that Vulkan allows a device to ask for
  const uint64_t step = kAlignment / std::gcd(tensor.shape.columns() * size_of(tensor.type), kAlignment);
  if (groups < step) {
    throw ShapeError(builder.path(),
                     fmt::format("{} rows take a workgroup each, the device allows {}, and a part of them must begin at "
                                 "a multiple of {} rows to be bound", tensor.shape.rows(), groups, step),
                     "use a device that allows 65535 workgroups, as Vulkan asks for");
  }
  return groups / step * step;
}

}  // namespace mulciber
