#include <random>

#include "runtime/memory_plan.h"
#include "tests/catch.h"

using namespace mulciber;

namespace {

bool alive_together(const PlannedTensor& a, const PlannedTensor& b) {
  return a.first_use <= b.last_use && b.first_use <= a.last_use;
}

bool overlap(const PlannedTensor& a, const PlannedTensor& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

TEST_CASE("Tensors alive at one time never share bytes") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<PlannedTensor> tensors;
    for (int i = 0; i < 40; ++i) {
      int32_t first = static_cast<int32_t>(random() % 50);
      tensors.push_back({1 + random() % 5000, first, first + static_cast<int32_t>(random() % 12)});
    }
    MemoryPlan plan = plan_memory(tensors, 256);
    for (size_t a = 0; a < tensors.size(); ++a) {
      CHECK(plan.tensors[a].offset % 256 == 0);
      CHECK(plan.tensors[a].offset + plan.tensors[a].bytes <= plan.arena_bytes);
      for (size_t b = a + 1; b < tensors.size(); ++b) {
        if (!alive_together(tensors[a], tensors[b])) continue;
        INFO(plan.to_string());
        REQUIRE_FALSE(overlap(plan.tensors[a], plan.tensors[b]));
      }
    }
    CHECK(plan.arena_bytes <= plan.unplanned_bytes);
  }
}

TEST_CASE("A chain of layers needs room for two activations") {
  std::vector<PlannedTensor> tensors;
  for (int32_t i = 0; i < 32; ++i) tensors.push_back({1024, i, i + 1});
  MemoryPlan plan = plan_memory(tensors, 256);
  CHECK(plan.arena_bytes == 2048);
  CHECK(plan.unplanned_bytes == 32 * 1024);
}

TEST_CASE("A tensor that no node uses takes no room") {
  MemoryPlan plan = plan_memory({{4096, -1, -1}, {256, 0, 1}}, 256);
  CHECK(plan.arena_bytes == 256);
}
