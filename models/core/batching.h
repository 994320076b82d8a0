// Batching: which sequences are computed together.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace mulciber {

struct BatchBounds {
  uint32_t tokens = 1500;  // sequences x longest sequence
  uint32_t sequences = 64;
  /// Most sequences of this length in a batch, by the device's limits.
  std::function<uint32_t(uint32_t length)> limit;
};

/// Groups sequences of similar lengths, longest first, to keep padding small. Each group holds
/// indices into `lengths`. A sequence too long for the bounds is a group of its own.
std::vector<std::vector<size_t>> plan_batches(std::span<const uint32_t> lengths,
                                              const BatchBounds& bounds);

/// Sequences of one search in their order, and its number of slots.
struct SearchPlan {
  std::vector<size_t> sequences;  // indices into `lengths`, longest first
  uint32_t slots = 1;
};
/// Plans searches with continuous batching, where sequences join as others leave. The next search
/// begins when the remaining sequences, which are shorter, fit in many more slots.
std::vector<SearchPlan> plan_searches(std::span<const uint32_t> lengths, const BatchBounds& bounds);

}  // namespace mulciber
