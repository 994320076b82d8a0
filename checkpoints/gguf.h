// The GGUF container: typed metadata and tensors, some of them in blocks, in one or several files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoints/checkpoint_tensor.h"
#include "checkpoints/json.h"
#include "checkpoints/model_file.h"

namespace mulciber {

/// Types of metadata values, numbered as in the format.
enum class GgufType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
const char* name_of(GgufType type);

/// A metadata value, or an array of values of one type: a view of checked bytes in the file, so
/// that a vocabulary takes no memory until it is asked for.
struct GgufValue {
  GgufType type = GgufType::kU8;
  bool is_array = false;
  std::uint64_t count = 1;           // elements of an array
  std::span<const std::byte> bytes;  // unchanged from the file; strings with their lengths

  // The type of a value; the caller knows which type its key needs.
  bool is_integer() const;
  bool is_number() const;
  bool is_text() const { return type == GgufType::kString && !is_array; }
  /// Value of a scalar; the type must match.
  std::int64_t integer() const;
  double number() const;
  bool boolean() const;
  std::string_view text() const;
  /// Elements of an array of strings.
  std::vector<std::string_view> texts() const;
  /// Elements of an array of integers, booleans or floats.
  std::vector<std::int64_t> integers() const;
  std::vector<double> numbers() const;
  /// A readable form: a scalar itself, or an array's type, count and first elements.
  Json shown(std::size_t most_elements = 8) const;
};

/// One fully checked .gguf file, version 2 or 3, little-endian.
/// Source of the format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
class GgufFile {
 public:
  /// Checks everything before use: magic, version, counts against the file's size, every string and
  /// array, unique keys and names, known tensor types, whole blocks per row, aligned offsets inside
  /// the file without overlap. Throws ModelError naming the file, and key or tensor.
  explicit GgufFile(ModelFile file);

  const std::filesystem::path& path() const { return file_.path(); }
  std::uint32_t version() const { return version_; }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return metadata_; }
  /// nullptr when there is no such key.
  const GgufValue* find_value(std::string_view key) const;
  /// `general.architecture`, or "" when it is missing.
  std::string architecture() const;
  /// In the order of the file's table.
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  /// nullptr when there is no tensor of that name. Logarithmic.
  const CheckpointTensor* find(std::string_view name) const;

 private:
  void read_metadata(class GgufReader& reader, std::uint64_t count);
  void read_tensors(class GgufReader& reader, std::uint64_t count);

  ModelFile file_;
  std::uint32_t version_ = 0;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<CheckpointTensor> tensors_;
  std::map<std::string_view, std::size_t> by_name_;
};

}  // namespace mulciber
