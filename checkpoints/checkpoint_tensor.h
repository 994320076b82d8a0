// A tensor as a checkpoint file holds it, and the types it may have.
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

/// Storage types a checkpoint may hold, whatever the device can compute with. Those from kQ4_0 on
/// are block types: a block of elements shares its scales. They are GGUF's, but for those from
/// kScaledF8E4M3 on, which are put together of several tensors of safetensors files
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
/// Bytes of one block: of one element for types without blocks.
std::size_t block_bytes(CheckpointType type);
/// Whether elements share scales in blocks.
inline bool is_quantized(CheckpointType type) { return block_elements(type) > 1; }

/// How the device holds values of a type as they are; nothing where it must convert them.
std::optional<DataType> device_type(CheckpointType type);

class BlockParts;
class FileBytes;
struct SortedColumns;

/// One tensor of a checkpoint: row-major, little-endian bytes inside a file. Blocks lie along the
/// innermost dimension and never cross a row.
struct CheckpointTensor {
  std::string name;
  CheckpointType type;
  std::vector<std::uint64_t> shape;  // outermost first; empty for a scalar
  /// Exactly what shape and type need, with no promise about alignment: copy before reading wider
  /// than bytes. Of files behind a function of the host's only places: read() them.
  std::span<const std::byte> bytes;
  std::shared_ptr<const FileBytes> file = nullptr;  // null: bytes in memory
  /// Of types from kScaledF8E4M3 on: what its blocks are put together from. `bytes` are then those
  /// of its largest part; read() gives blocks, into `scratch`.
  std::shared_ptr<const BlockParts> parts = nullptr;
  /// Of a matrix whose neighbours along a row share no scale: one in blocks whose columns do. Null:
  /// there is none.
  std::shared_ptr<const SortedColumns> sorted = nullptr;

  /// `count` bytes from `first` on, where they lie or in `scratch`. Throws as FileBytes::read().
  std::span<const std::byte> read(std::uint64_t first, std::uint64_t count,
                                  std::vector<std::byte>& scratch) const;
  /// The most bytes that are to be read at once.
  std::uint64_t most_at_once() const;
  /// Nobody reads it soon.
  void release() const;

  std::uint64_t elements() const;
  std::string shape_text() const;  // "[512, 48]"
};

/// A matrix with its columns in another order: column i is column order[i] of the one in the file.
struct SortedColumns {
  CheckpointTensor matrix;
  std::vector<std::uint32_t> order;
};

/// Bytes that a tensor of that type and shape takes, or nothing when they pass 64 bits. The
/// innermost dimension must be whole blocks.
std::optional<std::uint64_t> byte_count(CheckpointType type, std::span<const std::uint64_t> shape);

}  // namespace mulciber
