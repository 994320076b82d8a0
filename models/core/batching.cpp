#include "models/core/batching.h"

#include <algorithm>
#include <numeric>

namespace mulciber {

namespace {

std::vector<size_t> longest_first(std::span<const uint32_t> lengths) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  return order;
}

/// Most sequences of this length in a batch, by bounds.sequences and bounds.tokens.
uint32_t room_for(uint32_t length, const BatchBounds& bounds) {
  return std::max(std::min(bounds.sequences, bounds.tokens / std::max(length, 1u)), 1u);
}
uint32_t limited(uint32_t room, uint32_t length, const BatchBounds& bounds) {
  if (room > 1 && bounds.limit) room = std::min(room, bounds.limit(std::max(length, 1u)));
  return std::max(room, 1u);
}

}  // namespace

std::vector<std::vector<size_t>> plan_batches(std::span<const uint32_t> lengths,
                                              const BatchBounds& bounds) {
  std::vector<std::vector<size_t>> batches;
  size_t room = 0;
  for (size_t index : longest_first(lengths)) {
    if (room == 0) {
      room = limited(room_for(lengths[index], bounds), lengths[index], bounds);
      batches.emplace_back();
    }
    batches.back().push_back(index);
    --room;
  }
  return batches;
}

std::vector<SearchPlan> plan_searches(std::span<const uint32_t> lengths,
                                      const BatchBounds& bounds) {
  std::vector<SearchPlan> searches;
  const std::vector<size_t> order = longest_first(lengths);
  uint32_t asked = 0;  // room_for() of the search for which bounds.limit was called
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t length = lengths[order[i]], room = room_for(length, bounds);
    const auto fit = static_cast<uint32_t>(std::min<size_t>(room, order.size() - i));
    // Another search begins only with 1.5 times the slots: in the last steps of the previous
    // search, slots stay empty.
    const bool more = !searches.empty() && room > asked && fit >= searches.back().slots / 2 * 3 &&
                      fit > searches.back().slots + 1;
    if (searches.empty() || (more && limited(fit, length, bounds) > searches.back().slots)) {
      searches.push_back({{}, limited(fit, length, bounds)});
      asked = room;
    }
    searches.back().sequences.push_back(order[i]);
  }
  return searches;
}

}  // namespace mulciber
