// Which texts are computed together.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace mulciber {

struct BatchBounds {
  uint32_t tokens = 1500;  // sequences x longest sequence
  uint32_t sequences = 64;
  /// Most sequences of a length that the device takes at once.
  std::function<uint32_t(uint32_t length)> limit;
};

/// Groups sequences of like lengths, longest first, so that little is padding; each group holds
/// indices into `lengths`. A sequence too long for the bounds is a group of its own.
std::vector<std::vector<size_t>> plan_batches(std::span<const uint32_t> lengths,
                                              const BatchBounds& bounds);

/// Sequences that one search takes, one after the other, and how many of them at once.
struct SearchPlan {
  std::vector<size_t> sequences;  // indices into `lengths`, longest first
  uint32_t places = 1;
};
/// The same for searches that sequences join as others leave: one goes on until its places are far
/// fewer than the sequences that are left, which are shorter, could have.
std::vector<SearchPlan> plan_searches(std::span<const uint32_t> lengths, const BatchBounds& bounds);

}  // namespace mulciber
