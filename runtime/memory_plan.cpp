#include "runtime/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace mulciber {

MemoryPlan plan_memory(std::vector<PlannedTensor> tensors, uint64_t alignment) {
  MemoryPlan plan;
  auto rounded = [&](uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };

  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tensors[a].bytes > tensors[b].bytes; });

  std::vector<size_t> placed;  // sorted by offset
  for (size_t index : order) {
    PlannedTensor& tensor = tensors[index];
    if (tensor.first_use < 0) continue;
    const uint64_t bytes = rounded(tensor.bytes);
    plan.unplanned_bytes += bytes;
    uint64_t offset = 0;
    for (size_t other_index : placed) {
      const PlannedTensor& other = tensors[other_index];
      if (other.last_use < tensor.first_use || tensor.last_use < other.first_use) continue;
      if (offset + bytes <= other.offset) break;
      offset = std::max(offset, other.offset + rounded(other.bytes));
    }
    tensor.offset = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), index,
                         [&](size_t a, size_t b) { return tensors[a].offset < tensors[b].offset; }),
        index);
  }
  plan.tensors = std::move(tensors);
  return plan;
}

std::string MemoryPlan::to_string() const {
  std::string text =
      fmt::format("arena of {} bytes for {} bytes of tensors\n", arena_bytes, unplanned_bytes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PlannedTensor& t = tensors[i];
    if (t.first_use < 0) continue;
    text += fmt::format("  tensor {}: {} bytes at {}, nodes {} to {}\n", i, t.bytes, t.offset,
                        t.first_use, t.last_use);
  }
  return text;
}

}  // namespace mulciber
