// Poison and guards, which reveal writes outside a buffer and reads of unwritten memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mulciber {

/// This word is NaN as f32 and as f16, and as an id lies far past every table.
constexpr uint32_t kPoison = 0xffdeffde;

/// `bytes` bytes of poison; the poison byte at offset `at`.
std::vector<std::byte> poison(uint64_t bytes);
constexpr std::byte poison_byte(uint64_t at) {
  return static_cast<std::byte>(kPoison >> (8 * (at % 4)));
}

}  // namespace mulciber
