// Handles to tensors on the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/data_type.h"
#include "base/shape.h"
#include "runtime/vulkan.h"

namespace mulciber {

/// A range of a device buffer. `address` is 0 where the device has no buffer addresses, `mapped`
/// null where the memory is not host-visible.
struct BufferView {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0;   // bytes from the start of `buffer`
  uint64_t size = 0;     // bytes
  uint64_t address = 0;  // device address of the first byte of the range
  std::byte* mapped = nullptr;
};

/// A tensor of a program: either planned into the program's arena (arena_id >= 0), or in memory
/// that outlives it (weights, caches, step state). Dense and row-major.
struct Tensor {
  Shape shape;
  DataType type = DataType::kF32;
  int32_t arena_id = -1;
  uint64_t byte_offset = 0;  // from the start of the arena allocation or of `view`
  BufferView view;

  bool valid() const { return arena_id >= 0 || view.size > 0; }
  uint64_t bytes() const { return shape.rows() * row_bytes(type, shape.columns()); }
  /// A tensor of the same bytes under another shape with as many elements (block types: with as
  /// many columns). Throws ShapeError otherwise.
  Tensor reshaped(Shape to) const;
  /// Rows [first, first + count) of the tensor seen as (rows, columns).
  Tensor row_slice(uint64_t first, uint64_t count) const;
};

/// A tensor outside of arenas without memory: programs that use it can be planned, not recorded.
Tensor planned_tensor(const Shape& shape, DataType type = DataType::kF32);

}  // namespace mulciber
