// FNV-1a, 64 bits (Fowler, Noll, Vo 1991): equal on every machine, unlike std::hash. For names and
// files, not against attacks.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

namespace mulciber {

class Fnv1a {
 public:
  static constexpr uint64_t kBegin = 0xcbf29ce484222325;

  explicit Fnv1a(uint64_t state = kBegin) : state_(state) {}
  /// Hashes one word. The published function takes bytes; here wider words are mixed in whole.
  template <std::unsigned_integral Word>
  void add(Word word) {
    state_ = (state_ ^ word) * 0x100000001b3;
  }
  void add(std::string_view bytes) {
    for (char byte : bytes) add(static_cast<unsigned char>(byte));
  }
  template <std::unsigned_integral Word>
  void add(std::span<const Word> words) {
    for (Word word : words) add(word);
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace mulciber
