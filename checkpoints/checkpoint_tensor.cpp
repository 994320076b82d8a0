#include "checkpoints/checkpoint_tensor.h"

#include <algorithm>

#include "checkpoints/model_file.h"
#include "checkpoints/scaled_matrix.h"

namespace mulciber {
namespace {

struct TypeInfo {
  CheckpointType type;
  const char* name;
  std::size_t elements, bytes;  // per block
};

// In the order of the enumeration.
constexpr TypeInfo kTypes[] = {
    {CheckpointType::kF64, "F64", 1, 8},
    {CheckpointType::kF32, "F32", 1, 4},
    {CheckpointType::kF16, "F16", 1, 2},
    {CheckpointType::kBF16, "BF16", 1, 2},
    {CheckpointType::kF8E4M3, "F8_E4M3", 1, 1},
    {CheckpointType::kF8E5M2, "F8_E5M2", 1, 1},
    {CheckpointType::kI64, "I64", 1, 8},
    {CheckpointType::kI32, "I32", 1, 4},
    {CheckpointType::kI16, "I16", 1, 2},
    {CheckpointType::kI8, "I8", 1, 1},
    {CheckpointType::kU64, "U64", 1, 8},
    {CheckpointType::kU32, "U32", 1, 4},
    {CheckpointType::kU16, "U16", 1, 2},
    {CheckpointType::kU8, "U8", 1, 1},
    {CheckpointType::kBool, "BOOL", 1, 1},
    {CheckpointType::kQ4_0, "Q4_0", 32, 18},
    {CheckpointType::kQ4_1, "Q4_1", 32, 20},
    {CheckpointType::kQ5_0, "Q5_0", 32, 22},
    {CheckpointType::kQ5_1, "Q5_1", 32, 24},
    {CheckpointType::kQ8_0, "Q8_0", 32, 34},
    {CheckpointType::kQ2_K, "Q2_K", 256, 84},
    {CheckpointType::kQ3_K, "Q3_K", 256, 110},
    {CheckpointType::kQ4_K, "Q4_K", 256, 144},
    {CheckpointType::kQ5_K, "Q5_K", 256, 176},
    {CheckpointType::kQ6_K, "Q6_K", 256, 210},
    {CheckpointType::kIQ4_NL, "IQ4_NL", 32, 18},
    {CheckpointType::kIQ4_XS, "IQ4_XS", 256, 136},
    {CheckpointType::kIQ2_XXS, "IQ2_XXS", 256, 66},
    {CheckpointType::kIQ2_XS, "IQ2_XS", 256, 74},
    {CheckpointType::kIQ2_S, "IQ2_S", 256, 82},
    {CheckpointType::kIQ3_XXS, "IQ3_XXS", 256, 98},
    {CheckpointType::kIQ3_S, "IQ3_S", 256, 110},
    {CheckpointType::kMXFP4, "MXFP4", 32, 17},
    {CheckpointType::kScaledF8E4M3, "F8_E4M3 with scales", 32, 36},
    {CheckpointType::kInt4_32, "INT4 in groups of 32", 32, 20},
    {CheckpointType::kInt4_128, "INT4 in groups of 128", 32, 20},
};

const TypeInfo& info(CheckpointType type) { return kTypes[static_cast<std::size_t>(type)]; }

}  // namespace

const char* name_of(CheckpointType type) { return info(type).name; }
std::size_t block_elements(CheckpointType type) { return info(type).elements; }
std::size_t block_bytes(CheckpointType type) { return info(type).bytes; }

std::optional<DataType> device_type(CheckpointType type) {
  switch (type) {
    case CheckpointType::kF32: return DataType::kF32;
    case CheckpointType::kF16: return DataType::kF16;
    case CheckpointType::kBF16: return DataType::kBF16;
    case CheckpointType::kQ8_0: return DataType::kQ8_0;
    case CheckpointType::kQ4_0: return DataType::kQ4_0;
    case CheckpointType::kQ4_1: return DataType::kQ4_1;
    case CheckpointType::kQ5_0: return DataType::kQ5_0;
    case CheckpointType::kQ5_1: return DataType::kQ5_1;
    case CheckpointType::kQ4_K: return DataType::kQ4_K;
    case CheckpointType::kQ5_K: return DataType::kQ5_K;
    case CheckpointType::kQ6_K: return DataType::kQ6_K;
    case CheckpointType::kQ2_K: return DataType::kQ2_K;
    case CheckpointType::kQ3_K: return DataType::kQ3_K;
    case CheckpointType::kIQ4_NL: return DataType::kIQ4_NL;
    case CheckpointType::kIQ4_XS: return DataType::kIQ4_XS;
    case CheckpointType::kIQ2_XXS: return DataType::kIQ2_XXS;
    case CheckpointType::kIQ2_XS: return DataType::kIQ2_XS;
    case CheckpointType::kIQ2_S: return DataType::kIQ2_S;
    case CheckpointType::kIQ3_XXS: return DataType::kIQ3_XXS;
    case CheckpointType::kIQ3_S: return DataType::kIQ3_S;
    case CheckpointType::kMXFP4: return DataType::kMXFP4;
    case CheckpointType::kScaledF8E4M3: return DataType::kF8E4M3;
    case CheckpointType::kInt4_32: return DataType::kInt4_32;
    case CheckpointType::kInt4_128: return DataType::kInt4_128;
    default: return std::nullopt;
  }
}

std::span<const std::byte> CheckpointTensor::read(std::uint64_t first, std::uint64_t count,
                                                  std::vector<std::byte>& scratch) const {
  if (parts) {
    scratch.resize(count);
    parts->write(first / block_bytes(type), scratch);
    return scratch;
  }
  const auto part = bytes.subspan(first, count);
  return file ? file->read(part, scratch) : part;
}

std::uint64_t CheckpointTensor::most_at_once() const {
  return !file || file->in_memory() ? UINT64_MAX : kMostLentRead;
}

void CheckpointTensor::release() const {
  if (parts)
    parts->release();
  else if (file)
    file->release(bytes);
}

std::uint64_t CheckpointTensor::elements() const {
  if (parts) return shape[0] * shape[1];
  return bytes.size() / block_bytes(type) * block_elements(type);
}

std::string CheckpointTensor::shape_text() const {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::optional<std::uint64_t> byte_count(CheckpointType type, std::span<const std::uint64_t> shape) {
  // A zero anywhere makes the tensor empty, however large the other dimensions are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::uint64_t blocks = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::uint64_t n = i + 1 == shape.size() ? shape[i] / block_elements(type) : shape[i];
    if (__builtin_mul_overflow(blocks, n, &blocks)) return std::nullopt;
  }
  std::uint64_t bytes;
  if (__builtin_mul_overflow(blocks, block_bytes(type), &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace mulciber
