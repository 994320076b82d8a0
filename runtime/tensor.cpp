#include "runtime/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "mulciber/error.h"
#include "runtime/blocks.h"

namespace mulciber {

uint32_t size_of(DataType type) {
  if (is_block_type(type)) return 0;
  return type == DataType::kF16 || type == DataType::kBF16 ? 2 : 4;
}

uint32_t block_elements(DataType type) {
  if (!is_block_type(type)) return 1;
  return type >= DataType::kQ4_K ? 256 : 32;
}

uint64_t row_bytes(DataType type, uint64_t columns) {
  if (!is_block_type(type)) return columns * size_of(type);
  const uint64_t block = block_elements(type);
  if (columns % block != 0) {
    throw ShapeError("row",
                     fmt::format("{} elements are not whole blocks of {}, which have {}", columns,
                                 name_of(type), block),
                     "store such a matrix as f32 or f16");
  }
  return uint64_t{4} * BLOCKS_ROW_WORDS(block_format(type), columns);
}

const char* name_of(DataType type) {
  switch (type) {
    case DataType::kF32: return "f32";
    case DataType::kF16: return "f16";
    case DataType::kU32: return "u32";
    case DataType::kBF16: return "bf16";
    case DataType::kQ8_0: return "q8_0";
    case DataType::kQ4_0: return "q4_0";
    case DataType::kQ4_1: return "q4_1";
    case DataType::kQ5_0: return "q5_0";
    case DataType::kQ5_1: return "q5_1";
    case DataType::kQ4_K: return "q4_k";
    case DataType::kQ5_K: return "q5_k";
    case DataType::kQ6_K: return "q6_k";
    case DataType::kHalf: return "half";
    case DataType::kBlocks: return "blocks";
  }
  return "?";
}

Shape::Shape(std::initializer_list<uint64_t> extents)
    : Shape(std::span<const uint64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const uint64_t> extents) {
  if (extents.size() > kMaxRank) {
    throw ShapeError(
        "shape", fmt::format("{} dimensions, at most {} are supported", extents.size(), kMaxRank),
        "");
  }
  for (uint64_t extent : extents) extents_[rank_++] = extent;
}

uint64_t Shape::operator[](int dimension) const {
  int index = dimension < 0 ? dimension + static_cast<int>(rank_) : dimension;
  if (index < 0 || index >= static_cast<int>(rank_)) {
    throw ShapeError("shape " + to_string(), fmt::format("has no dimension {}", dimension), "");
  }
  return extents_[index];
}

uint64_t Shape::elements() const {
  uint64_t product = 1;
  for (size_t i = 0; i < rank_; ++i) product *= extents_[i];
  return product;
}

uint64_t Shape::rows() const {
  uint64_t product = 1;
  for (size_t i = 0; i + 1 < rank_; ++i) product *= extents_[i];
  return product;
}

std::string Shape::to_string() const {
  return fmt::format("({})", fmt::join(extents_, extents_ + rank_, ", "));
}

bool Shape::operator==(const Shape& other) const {
  if (rank_ != other.rank_) return false;
  for (size_t i = 0; i < rank_; ++i) {
    if (extents_[i] != other.extents_[i]) return false;
  }
  return true;
}

Tensor Tensor::reshaped(Shape to) const {
  if (to.elements() != shape.elements() ||
      (is_block_type(type) && to.columns() != shape.columns())) {
    throw ShapeError("reshape",
                     fmt::format("{} holds {} elements, {} holds {}", shape.to_string(),
                                 shape.elements(), to.to_string(), to.elements()),
                     "");
  }
  Tensor result = *this;
  result.shape = to;
  return result;
}

Tensor Tensor::row_slice(uint64_t first, uint64_t count) const {
  if (first + count > shape.rows()) {
    throw ShapeError("row slice",
                     fmt::format("rows {} to {} of {}", first, first + count, shape.to_string()),
                     "");
  }
  Tensor result = *this;
  result.shape = Shape{count, shape.columns()};
  result.byte_offset += first * row_bytes(type, shape.columns());
  return result;
}

}  // namespace mulciber
