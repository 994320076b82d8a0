// A tensor of a checkpoint file, and the types that it may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/data_type.h"

namespace mulciber {

/// Storage types of checkpoints, whether or not a device can compute with them. Types from kQ4_0 on
/// are block types: a block of elements shares its scales. They are GGUF's, except for the types
/// from kScaledF8E4M3 on, which are put together from several tensors of safetensors files
/// (checkpoints/scaled_matrix.h).
enum class CheckpointType {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kMXFP4,
  kScaledF8E4M3,
  kInt4_32,
  kInt4_128,
};

/// The type's name, as safetensors headers ("BF16") and GGUF tools ("Q4_K") write it.
const char* name_of(CheckpointType type);
/// Elements of one block; 1 for types without blocks.
std::size_t block_elements(CheckpointType type);
/// Bytes of one block; of one element for types without blocks.
std::size_t block_bytes(CheckpointType type);
/// Whether elements share scales in blocks.
inline bool is_quantized(CheckpointType type) { return block_elements(type) > 1; }

/// The device type that stores values of a type unchanged; nothing where they must be converted.
std::optional<DataType> device_type(CheckpointType type);

class BlockParts;
class FileBytes;
struct SortedColumns;

/// One tensor of a checkpoint: row-major, little-endian bytes in a file. Blocks lie along the
/// innermost dimension and never cross a row.
struct CheckpointTensor {
  std::string name;
  CheckpointType type;
  std::vector<std::uint64_t> shape;  // outermost first; empty for a scalar
  /// Exactly the bytes of shape and type, in any alignment: copy before reading more than single
  /// bytes. For files behind an application's function these are only addresses: use read().
  std::span<const std::byte> bytes;
  std::shared_ptr<const FileBytes> file = nullptr;  // null: bytes in memory
  /// For types from kScaledF8E4M3 on: the tensors from which blocks are put together. `bytes` then
  /// are the bytes of the largest of them; read() writes blocks into `scratch`.
  std::shared_ptr<const BlockParts> parts = nullptr;
  /// For a matrix whose neighbouring columns share no scale: the matrix in blocks with sorted
  /// columns. Null: there is none.
  std::shared_ptr<const SortedColumns> sorted = nullptr;

  /// Gives `count` bytes from `first` on, in place or in `scratch`. Throws as FileBytes::read()
  /// does.
  std::span<const std::byte> read(std::uint64_t first, std::uint64_t count,
                                  std::vector<std::byte>& scratch) const;
  /// The most bytes that may be read at once.
  std::uint64_t most_at_once() const;
  /// Tells that the tensor will not be read soon.
  void release() const;

  std::uint64_t elements() const;
  std::string shape_text() const;  // "[512, 48]"
};

/// A matrix with reordered columns: column i is column order[i] of the matrix in the file.
struct SortedColumns {
  CheckpointTensor matrix;
  std::vector<std::uint32_t> order;
};

/// Bytes of a tensor of that type and shape, or nothing when they exceed 64 bits. The innermost
/// dimension must be whole blocks.
std::optional<std::uint64_t> byte_count(CheckpointType type, std::span<const std::uint64_t> shape);

}  // namespace mulciber
