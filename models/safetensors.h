// The safetensors container: a JSON header and the raw bytes of named tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/mapped_file.h"

namespace mulciber {

/// Element types a checkpoint may hold, whatever the device can compute with.
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
};

/// The type's name in a safetensors header ("BF16").
const char* name_of(CheckpointType type);
/// Bytes of one element.
std::size_t element_bytes(CheckpointType type);

/// One tensor of a checkpoint: row-major, little-endian bytes inside a mapped file.
struct CheckpointTensor {
  std::string name;
  CheckpointType type;
  std::vector<std::uint64_t> shape;  // outermost first; empty for a scalar
  /// Exactly elements() * element_bytes(type) bytes, with no promise about alignment: copy before
  /// reading wider than bytes.
  std::span<const std::byte> bytes;

  std::uint64_t elements() const;
  std::string shape_text() const;  // "[512, 48]"
};

/// A mapped and fully checked .safetensors file.
/// Source of the format: https://huggingface.co/docs/safetensors/index
class SafetensorsFile {
 public:
  /// Maps the file and checks its header: length against the file's size, syntax, known types,
  /// shape products, offsets that cover the data without hole or overlap, unique names. No number
  /// of the file is trusted, and memory use stays within a small multiple of the header's real
  /// length. Throws ModelError naming file and tensor.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  /// In the order of their bytes in the file.
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  /// nullptr when there is no tensor of that name. Logarithmic.
  const CheckpointTensor* find(std::string_view name) const;
  /// The free-form `__metadata__` strings.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  MappedFile file_;
  std::vector<CheckpointTensor> tensors_;
  std::vector<std::uint32_t> by_name_;  // indices into tensors_, sorted by name
  std::map<std::string, std::string> metadata_;
};

}  // namespace mulciber
