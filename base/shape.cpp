#include "base/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "mulciber/error.h"

namespace mulciber {

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

}  // namespace mulciber
