// Extents of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace mulciber {

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

}  // namespace mulciber
