// Poison and guards: how writes outside a buffer show, and reads of what nobody wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mulciber {

/// NaN as f32 and as f16, and an id far past every table.
constexpr uint32_t kPoison = 0xffdeffde;

/// `bytes` of poison; byte `at` of it.
std::vector<std::byte> poison(uint64_t bytes);
constexpr std::byte poison_byte(uint64_t at) {
  return static_cast<std::byte>(kPoison >> (8 * (at % 4)));
}

}  // namespace mulciber
