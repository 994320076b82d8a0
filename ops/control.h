// The control tensor: numbers that change from run to run, in one buffer that the host writes and
// kernels read. Whatever stands in it has a name and a type: an array of numbers, or of structs
// whose fields GLSL shares (shaders/*.h). A ControlLayout says where each begins; nothing else
// computes places.
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

/// An array that stands in control. T: uint32_t, float, or a struct of such fields.
template <typename T>
struct ControlArray {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(uint32_t) == 0);
  static constexpr uint32_t kWords = sizeof(T) / sizeof(uint32_t);  // of an element

  uint32_t word = 0;  // of control, where the first element begins
  uint32_t count = 0;

  uint64_t end() const { return word + uint64_t{count} * kWords; }
  /// Elements from the start of control to the first: what a kernel adds that sees all of control
  /// as an array of T.
  uint32_t index() const { return word / kWords; }
  /// Elements [first, first + length).
  ControlArray part(uint64_t first, uint64_t length) const {
    return {static_cast<uint32_t>(word + first * kWords), static_cast<uint32_t>(length)};
  }
  /// A field of an element, which kernels read that know nothing of the struct.
  template <typename Field, typename Struct>
  ControlArray<Field> field(Field Struct::*member, uint32_t element = 0) const {
    static_assert(std::is_same_v<Struct, T>);
    static const T kProbe{};
    const auto bytes = reinterpret_cast<const std::byte*>(&(kProbe.*member)) -
                       reinterpret_cast<const std::byte*>(&kProbe);
    return {static_cast<uint32_t>(word + element * kWords + bytes / sizeof(uint32_t)), 1};
  }
};

/// What a kernel's parameters say of an array that need not be there: its word, or -1.
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

/// Whether an array of one element for all rows, or one for each, serves so many rows; and how far
/// it is from one row's to the next.
inline bool serves_rows(const ControlArray<uint32_t>& array, uint64_t rows) {
  return array.count == 1 || array.count >= rows;
}
inline uint32_t stride_of(const ControlArray<uint32_t>& array) { return array.count == 1 ? 0 : 1; }

/// Hands out room, one array after the other.
class ControlLayout {
 public:
  explicit ControlLayout(uint32_t first_word = 0) : words_(first_word) {}

  /// Room for so many elements, aligned to their size. Throws ShapeError where control would pass
  /// 4 GiB.
  template <typename T>
  ControlArray<T> add(uint64_t count) {
    constexpr uint32_t kWords = ControlArray<T>::kWords;
    const uint32_t begin = take(kWords, count * kWords);
    return {begin, static_cast<uint32_t>(count)};
  }
  /// Room for a list of up to `capacity` ids: how many, then the ids.
  ControlArray<uint32_t> add_list(uint64_t capacity) { return add<uint32_t>(1 + capacity); }

  /// Words of control so far.
  uint32_t words() const { return words_; }

 private:
  uint32_t take(uint32_t alignment, uint64_t words);
  uint32_t words_;
};

/// The host's copy of control.
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
  /// A list as ControlLayout::add_list() makes room for.
  void set_list(const ControlArray<uint32_t>& list, std::span<const uint32_t> ids) {
    set(list, 0, static_cast<uint32_t>(ids.size()));
    set(list.part(1, list.count - 1), ids);
  }
  std::span<const uint32_t> values(const ControlArray<uint32_t>& array) const {
    return std::span(words_).subspan(array.word, array.count);
  }

  /// Adds numbers or structs at the end, and says where they stand.
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
