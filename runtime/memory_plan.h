// Places tensors with known lifetimes into one arena; tensors that are alive at one time never
// overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mulciber {

struct PlannedTensor {
  uint64_t bytes = 0;
  int32_t first_use = -1;  // index of the first node that touches it; -1: never used
  int32_t last_use = -1;
  uint64_t offset = 0;  // result
};

struct MemoryPlan {
  std::vector<PlannedTensor> tensors;
  uint64_t arena_bytes = 0;
  uint64_t unplanned_bytes = 0;  // bytes that the tensors would take without sharing
  /// One line per tensor: bytes, lifetime, offset.
  std::string to_string() const;
};

/// Places the largest tensor first, each at the lowest offset that is free over its whole lifetime.
/// Offsets are multiples of `alignment`. Source: greedy by size, Pisarchyk and Lee 2020,
/// arXiv:2001.03288.
MemoryPlan plan_memory(std::vector<PlannedTensor> tensors, uint64_t alignment);

}  // namespace mulciber
