#include "runtime/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "mulciber/error.h"

namespace mulciber {

uint32_t size_of(DataType type) { return type == DataType::kF16 ? 2 : 4; }

const char* name_of(DataType type) {
  switch (type) {
    case DataType::kF32: return "f32";
    case DataType::kF16: return "f16";
    case DataType::kU32: return "u32";
  }
  return "?";
}

Shape::Shape(std::initializer_list<uint64_t> extents)
    : Shape(std::span<const uint64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const uint64_t> extents) {
  if (extents.size() > kMaxRank) {
    throw ShapeError("shape", fmt::format("{} dimensions, at most {} are supported",
                                          extents.size(), kMaxRank), "");
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
  if (to.elements() != shape.elements()) {
    throw ShapeError("reshape", fmt::format("{} holds {} elements, {} holds {}", shape.to_string(),
                                            shape.elements(), to.to_string(), to.elements()), "");
  }
  Tensor result = *this;
  result.shape = to;
  return result;
}

Tensor Tensor::row_slice(uint64_t first, uint64_t count) const {
  if (first + count > shape.rows()) {
    throw ShapeError("row slice", fmt::format("rows {} to {} of {}", first, first + count,
                                              shape.to_string()), "");
  }
  Tensor result = *this;
  result.shape = Shape{count, shape.columns()};
  result.byte_offset += first * shape.columns() * size_of(type);
  return result;
}

}  // namespace mulciber
