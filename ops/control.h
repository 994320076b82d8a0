// The control tensor: values that change from run to run, in one buffer that the CPU writes and
// kernels read. Each value has a name and a type: an array of numbers, or of structs that C++ and
// GLSL share (shaders/*.h). A ControlLayout assigns all positions; nothing else computes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/tensor.h"

namespace mulciber {

/// An array in control. T: uint32_t, float, or a struct of such fields.
template <typename T>
struct ControlArray {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(uint32_t) == 0);
  static constexpr uint32_t kWords = sizeof(T) / sizeof(uint32_t);  // words of an element

  uint32_t word = 0;  // word of control where the first element begins
  uint32_t count = 0;

  uint64_t end() const { return word + uint64_t{count} * kWords; }
  /// Index of the first element for a kernel that reads control as one array of T.
  uint32_t index() const { return word / kWords; }
  /// Elements [first, first + length).
  ControlArray part(uint64_t first, uint64_t length) const {
    return {static_cast<uint32_t>(word + first * kWords), static_cast<uint32_t>(length)};
  }
  /// A field of one element, for kernels that do not know the struct.
  template <typename Field, typename Struct>
  ControlArray<Field> field(Field Struct::*member, uint32_t element = 0) const {
    static_assert(std::is_same_v<Struct, T>);
    static const T kProbe{};
    const auto bytes = reinterpret_cast<const std::byte*>(&(kProbe.*member)) -
                       reinterpret_cast<const std::byte*>(&kProbe);
    return {static_cast<uint32_t>(word + element * kWords + bytes / sizeof(uint32_t)), 1};
  }
};

/// The word of an optional array for a kernel's parameters, or -1 where it is absent.
template <typename T>
int32_t word_or_none(const std::optional<ControlArray<T>>& array) {
  return array ? static_cast<int32_t>(array->word) : -1;
}

/// Whether an array with room for `needed` elements lies within a control tensor.
template <typename T>
bool fits(const ControlArray<T>& array, uint64_t needed, const Tensor& control) {
  return control.type == DataType::kU32 && array.count >= needed &&
         array.end() <= control.shape.elements();
}

/// Whether an array has one element for all rows, or one for each of `rows` rows. (stride_of() is
/// the distance between two rows' elements.)
inline bool serves_rows(const ControlArray<uint32_t>& array, uint64_t rows) {
  return array.count == 1 || array.count >= rows;
}
inline uint32_t stride_of(const ControlArray<uint32_t>& array) { return array.count == 1 ? 0 : 1; }

/// Assigns positions to arrays, one after the other.
class ControlLayout {
 public:
  explicit ControlLayout(uint32_t first_word = 0) : words_(first_word) {}

  /// Adds an array of `count` elements, aligned to their size. Throws ShapeError where control
  /// would exceed 4 GiB.
  template <typename T>
  ControlArray<T> add(uint64_t count) {
    constexpr uint32_t kWords = ControlArray<T>::kWords;
    const uint32_t begin = take(kWords, count * kWords);
    return {begin, static_cast<uint32_t>(count)};
  }
  /// Adds a list of up to `capacity` ids: their number, then the ids.
  ControlArray<uint32_t> add_list(uint64_t capacity) { return add<uint32_t>(1 + capacity); }

  /// Words assigned so far.
  uint32_t words() const { return words_; }

 private:
  uint32_t take(uint32_t alignment, uint64_t words);
  uint32_t words_;
};

/// Control in CPU memory, to be uploaded or as read back.
class ControlWords {
 public:
  ControlWords() = default;
  explicit ControlWords(size_t words, uint32_t value = 0) : words_(words, value) {}
  explicit ControlWords(std::vector<uint32_t> words) : words_(std::move(words)) {}

  template <typename T>
  T get(const ControlArray<T>& array, uint32_t element = 0) const {
    T value;
    std::memcpy(&value, &words_.at(last_word(array, element)) - (ControlArray<T>::kWords - 1),
                sizeof(T));
    return value;
  }
  template <typename T>
  void set(const ControlArray<T>& array, uint32_t element, const std::type_identity_t<T>& value) {
    std::memcpy(&words_.at(last_word(array, element)) - (ControlArray<T>::kWords - 1), &value,
                sizeof(T));
  }
  /// Elements from the first on.
  template <typename T>
  void set(const ControlArray<T>& array, std::span<const std::type_identity_t<T>> values) {
    for (size_t i = 0; i < values.size(); ++i) set(array, static_cast<uint32_t>(i), values[i]);
  }
  template <typename T>
  void fill(const ControlArray<T>& array, const std::type_identity_t<T>& value) {
    for (uint32_t i = 0; i < array.count; ++i) set(array, i, value);
  }
  /// Writes a list that ControlLayout::add_list() made.
  void set_list(const ControlArray<uint32_t>& list, std::span<const uint32_t> ids) {
    set(list, 0, static_cast<uint32_t>(ids.size()));
    set(list.part(1, list.count - 1), ids);
  }
  std::span<const uint32_t> values(const ControlArray<uint32_t>& array) const {
    return std::span(words_).subspan(array.word, array.count);
  }

  /// Appends numbers or structs and returns their array.
  template <typename Range, typename T = std::ranges::range_value_t<Range>>
  ControlArray<T> append(const Range& elements) {
    ControlLayout layout(static_cast<uint32_t>(words_.size()));
    const ControlArray<T> array = layout.add<T>(std::size(elements));
    words_.resize(layout.words());
    set(array, elements);
    return array;
  }

  size_t size() const { return words_.size(); }
  const std::vector<uint32_t>& words() const { return words_; }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_)); }

 private:
  template <typename T>
  static size_t last_word(const ControlArray<T>& array, uint32_t element) {
    return array.word + (uint64_t{element} + 1) * ControlArray<T>::kWords - 1;
  }
  std::vector<uint32_t> words_;
};

}  // namespace mulciber
