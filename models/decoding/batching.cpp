#include "models/decoding/batching.h"

#include <algorithm>
#include <numeric>

namespace mulciber {

std::vector<std::vector<size_t>> plan_batches(std::span<const uint32_t> lengths,
                                              const BatchBounds& bounds) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });

  std::vector<std::vector<size_t>> batches;
  size_t room = 0;
  for (size_t index : order) {
    if (room == 0) {
      const uint32_t length = std::max(lengths[index], 1u);
      uint32_t most = std::min(bounds.sequences, bounds.tokens / length);
      if (most > 1 && bounds.limit) most = std::min(most, bounds.limit(length));
      room = std::max(most, 1u);
      batches.emplace_back();
    }
    batches.back().push_back(index);
    --room;
  }
  return batches;
}

}  // namespace mulciber
