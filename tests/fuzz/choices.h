// Choices that a fuzz target of an interface reads from its input: arguments, and objects to call
// with.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "mulciber/mulciber_c.h"

namespace mulciber::fuzz {

/// Reads the input as choices; zeros choose what is valid.
class Choices {
 public:
  Choices(const uint8_t* bytes, size_t size) : at_(bytes), end_(bytes + size) {}
  bool left() const { return at_ != end_; }
  uint8_t byte() { return left() ? *at_++ : 0; }
  bool rarely() { return byte() >= 240; }
  VkBool32 flag() { return byte() & 1; }
  uint32_t number() {
    constexpr uint32_t kNumbers[] = {
        1,  0,  2,  3,   4,   7,   8,   12,  16,   31,    32,       33,          48,
        63, 64, 65, 127, 128, 129, 255, 256, 1000, 65535, 1u << 20, 0x7fffffffu, 0xffffffffu};
    return kNumbers[byte() % std::size(kNumbers)];
  }
  double real() {
    constexpr double kReals[] = {2000, 0,    1,     0.5,      -1,        1e9,
                                 7,    1e-9, 1e300, HUGE_VAL, -HUGE_VAL, NAN};
    return kReals[byte() % std::size(kReals)];
  }
  float single() { return static_cast<float>(real()); }
  /// Every structure has its first pointer behind 8 bytes, so no size cuts one.
  template <typename T>
  uint32_t size_of() {
    constexpr uint32_t kSizes[] = {sizeof(T), 8, 0, 4, sizeof(T) + 8, 0xffffffffu};
    const uint8_t choice = byte();
    return choice < 224 ? sizeof(T) : kSizes[choice % std::size(kSizes)];
  }
  template <typename T>
  T structure() {
    T made = {};
    made.size = size_of<T>();
    return made;
  }
  std::string text() {
    const auto length = std::min<size_t>(byte() % 32, static_cast<size_t>(end_ - at_));
    const std::string found(reinterpret_cast<const char*>(at_), length);
    at_ += length;
    return found;
  }
  template <typename T>
  T* or_null(T* pointer) {
    return rarely() ? nullptr : pointer;
  }

 private:
  const uint8_t *at_, *end_;
};

/// Objects of a type. The first may be one of `Loaded`, which stays.
template <typename T, void (*kDestroy)(T*)>
class Objects {
 public:
  Objects() = default;
  explicit Objects(T* kept) : kept_(1), all_{kept} {}
  explicit Objects(const std::array<T*, 4>& kept) : kept_(4), all_(kept.begin(), kept.end()) {}
  ~Objects() {
    while (all_.size() > kept_) destroy_last();
  }
  Objects(const Objects&) = delete;
  T* pick(Choices& in) const {
    const size_t at = in.byte() % (all_.size() + 1);
    return at < all_.size() ? all_[at] : nullptr;
  }
  void add(T* object) {
    if (!object) return;
    all_.push_back(object);
    if (all_.size() > kept_ + kMost) destroy_last();
  }
  void destroy_last() {
    if (all_.size() == kept_) return kDestroy(nullptr);
    kDestroy(all_.back());
    all_.pop_back();
  }

 private:
  static constexpr size_t kMost = 3;
  size_t kept_ = 0;
  std::vector<T*> all_;
};

}  // namespace mulciber::fuzz
