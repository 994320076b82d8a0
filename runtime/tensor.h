// Shapes, data types, and handles to tensors on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <volk.h>

namespace mulciber {

/// Storage types of tensors. Arithmetic is 32-bit whatever the storage (design: accumulate in f32).
/// Those from kQ8_0 on are blocks of elements that share scales (runtime/blocks.h): of matrices,
/// kQ8_0 of caches of keys too.
enum class DataType : uint8_t {
  kF32,
  kF16,
  kU32,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  // What a row of kernels.def may say instead of a type: no tensor has these.
  kHalf,    // f16 or bf16
  kBlocks,  // any of the block types
};

inline bool is_block_type(DataType type) {
  return type >= DataType::kQ8_0 && type <= DataType::kQ6_K;
}
/// Bytes of one element; 0 for block types, whose elements have none of their own.
uint32_t size_of(DataType type);
/// Elements of a block, of which a row must hold whole ones; 1 for types without blocks.
uint32_t block_elements(DataType type);
/// Bytes of a row of `columns` elements; rows of block types are padded to 16.
/// Throws ShapeError when `columns` is not whole blocks.
uint64_t row_bytes(DataType type, uint64_t columns);
const char* name_of(DataType type);

/// Row-major extents, outermost first. A scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr size_t kMaxRank = 5;
  Shape() = default;
  Shape(std::initializer_list<uint64_t> extents);
  explicit Shape(std::span<const uint64_t> extents);

  size_t rank() const { return rank_; }
  /// Extent of a dimension; negative counts from the innermost (-1).
  uint64_t operator[](int dimension) const;
  uint64_t elements() const;
  /// Product of all extents but the innermost; 1 for rank 1.
  uint64_t rows() const;
  uint64_t columns() const { return rank_ == 0 ? 1 : extents_[rank_ - 1]; }
  std::string to_string() const;
  bool operator==(const Shape& other) const;

 private:
  uint64_t extents_[kMaxRank] = {};
  size_t rank_ = 0;
};

/// A range of a device buffer. `address` is 0 where the device has no buffer addresses, `mapped`
/// null where the host cannot see the memory.
struct BufferView {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0;   // bytes from the start of `buffer`
  uint64_t size = 0;     // bytes
  uint64_t address = 0;  // device address of the first byte of the range
  std::byte* mapped = nullptr;
};

/// A tensor of a program: either planned into the program's arena (arena_id >= 0), or standing in
/// memory that outlives it (weights, caches, step state). Dense and row-major.
struct Tensor {
  Shape shape;
  DataType type = DataType::kF32;
  int32_t arena_id = -1;
  uint64_t byte_offset = 0;  // from the start of the arena allocation or of `view`
  BufferView view;

  bool valid() const { return arena_id >= 0 || view.size > 0; }
  uint64_t bytes() const { return shape.rows() * row_bytes(type, shape.columns()); }
  /// The same bytes under another shape of as many elements (of block types: of as many columns).
  /// Throws ShapeError otherwise.
  Tensor reshaped(Shape to) const;
  /// Rows [first, first + count) of the tensor seen as (rows, columns).
  Tensor row_slice(uint64_t first, uint64_t count) const;
};

}  // namespace mulciber
