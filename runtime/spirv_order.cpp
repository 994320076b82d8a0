#include "runtime/spirv_order.h"

#include <fmt/format.h>

#include <numeric>
#include <random>

#include "runtime/spirv_entry.h"

namespace mulciber {
namespace {

// A random order along an axis of the grid, whose extent n is known only at dispatch: i becomes
// (factor * i + shift) mod n, where factor is a prime that does not divide n. At most one of two
// primes divides an n up to kLargestShuffled, and 2^32 / kLargestShuffled is above both, so that
// nothing overflows. Longer axes are rotated.
constexpr uint32_t kPrimes[] = {1459, 1471, 1499, 1553, 1607, 1699, 1777, 1831, 1913, 2003};
constexpr uint32_t kLargestShuffled = 1u << 21;
static_assert(kPrimes[0] * kPrimes[1] > kLargestShuffled);
static_assert((kPrimes[9] + 1) * uint64_t{kLargestShuffled} < uint64_t{1} << 32);

class Reorderer {
 public:
  Reorderer(std::span<const uint32_t> module, const Order& order, const SubgroupBlocks& subgroups)
      : entry_(module),
        order_(order),
        blocks_(subgroups),
        random_(order.seed),
        uint_(entry_.uint_type()),
        vector_(entry_.vector_type()) {}

  std::vector<uint32_t> reorder() {
    using namespace spirv;
    const bool moves_groups = has(kBuiltInWorkgroupId) || has(kBuiltInGlobalInvocationId);
    const bool moves_lanes =
        blocks_.count > 1 && (has(kBuiltInLocalInvocationIndex) || has(kBuiltInLocalInvocationId) ||
                              has(kBuiltInGlobalInvocationId));
    const bool moves_subgroups = blocks_.count > 1 && has(kBuiltInSubgroupId);
    if (moves_groups) choose({kBuiltInWorkgroupId, kBuiltInGlobalInvocationId});
    if (moves_lanes) choose({kBuiltInLocalInvocationIndex, kBuiltInLocalInvocationId});
    if (moves_subgroups) choose({kBuiltInSubgroupId});
    choose_subgroup_order();

    const uint32_t label = entry_.fresh();
    uint32_t group = 0;
    if (moves_groups) {
      group = new_group();
      entry_.store(kBuiltInWorkgroupId, group);
    }
    uint32_t local = 0;
    if (moves_lanes) {
      const uint32_t zero = entry_.constant(0);
      const uint32_t index = new_index(entry_.load(kBuiltInLocalInvocationIndex));
      local = entry_.value(kOpCompositeConstruct, vector_, {index, zero, zero});
      entry_.store(kBuiltInLocalInvocationIndex, index);
      entry_.store(kBuiltInLocalInvocationId, local);
    }
    if (has(kBuiltInGlobalInvocationId)) {
      if (!moves_lanes) local = entry_.load(kBuiltInLocalInvocationId);
      entry_.store_global_id(group, local);
    }
    if (moves_subgroups)
      entry_.store(kBuiltInSubgroupId, new_subgroup(entry_.load(kBuiltInSubgroupId)));
    entry_.call_module();
    return entry_.finish(label);
  }

 private:
  bool has(uint32_t which) const { return entry_.builtin(which) != 0; }
  void choose(std::initializer_list<uint32_t> builtins) {
    for (const uint32_t which : builtins) entry_.choose(which);
  }
  uint32_t number(uint32_t op, uint32_t a, uint32_t b) { return entry_.value(op, uint_, {a, b}); }
  uint32_t select(uint32_t condition, uint32_t a, uint32_t b) {
    return entry_.value(spirv::kOpSelect, uint_, {condition, a, b});
  }
  uint32_t draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  uint32_t new_group() {
    using namespace spirv;
    const uint32_t own = entry_.load(kBuiltInWorkgroupId),
                   counts = entry_.load(kBuiltInNumWorkgroups);
    uint32_t axes[3];
    for (uint32_t axis = 0; axis < 3; ++axis) {
      axes[axis] = new_position(number(kOpCompositeExtract, own, axis),
                                number(kOpCompositeExtract, counts, axis));
    }
    return entry_.value(kOpCompositeConstruct, vector_, {axes[0], axes[1], axes[2]});
  }

  // Renumbers position `i` along an axis of extent `count`.
  uint32_t new_position(uint32_t i, uint32_t count) {
    using namespace spirv;
    const uint32_t one = entry_.constant(1);
    if (order_.kind == Order::kReverse) return number(kOpISub, number(kOpISub, count, one), i);
    const uint32_t which = draw(9);
    const uint32_t prime = entry_.constant(kPrimes[which]),
                   other = entry_.constant(kPrimes[which + 1]), zero = entry_.constant(0),
                   most = entry_.constant(kLargestShuffled), seed = entry_.constant(draw(1u << 30));
    const uint32_t divides =
        entry_.value(kOpIEqual, entry_.bool_type(), {number(kOpUMod, count, prime), zero});
    const uint32_t is_long = entry_.value(kOpUGreaterThan, entry_.bool_type(), {count, most});
    const uint32_t factor = select(is_long, one, select(divides, other, prime));
    const uint32_t shift = number(kOpUMod, seed, count);
    return number(kOpUMod, number(kOpIAdd, number(kOpIMul, i, factor), shift), count);
  }

  void choose_subgroup_order() {
    if (blocks_.count < 2) return;
    do {
      factor_ = 1 + draw(blocks_.count - 1);
    } while (std::gcd(factor_, blocks_.count) != 1);
    // Factor 1 and shift 0 together would be the device's own order.
    shift_ = factor_ == 1 ? 1 + draw(blocks_.count - 1) : draw(blocks_.count);
  }

  uint32_t new_subgroup(uint32_t i) {
    using namespace spirv;
    const uint32_t count = entry_.constant(blocks_.count),
                   last = entry_.constant(blocks_.count - 1);
    uint32_t moved;
    if (order_.kind == Order::kReverse) {
      moved = number(kOpISub, last, i);
    } else {
      const uint32_t factor = entry_.constant(factor_), shift = entry_.constant(shift_);
      moved = number(kOpUMod, number(kOpIAdd, number(kOpIMul, i, factor), shift), count);
    }
    return select(entry_.value(kOpULessThan, entry_.bool_type(), {i, count}), moved, i);
  }

  uint32_t new_index(uint32_t index) {
    using namespace spirv;
    const uint32_t size = entry_.constant(blocks_.size);
    const uint32_t subgroup = new_subgroup(number(kOpUDiv, index, size));
    return number(kOpIAdd, number(kOpIMul, subgroup, size), number(kOpUMod, index, size));
  }

  spirv::EntryWrapper entry_;
  const Order order_;
  const SubgroupBlocks blocks_;
  std::mt19937 random_;
  const uint32_t uint_, vector_;
  uint32_t factor_ = 1, shift_ = 0;
};

}  // namespace

std::string name_of(const Order& order) {
  switch (order.kind) {
    case Order::kForward: return "forward";
    case Order::kReverse: return "reverse";
    case Order::kRandom: return fmt::format("random {}", order.seed);
  }
  return "";
}

std::vector<uint32_t> reorder(std::span<const uint32_t> module, const Order& order,
                              const SubgroupBlocks& subgroups) {
  if (order.kind == Order::kForward) return {module.begin(), module.end()};
  return Reorderer(module, order, subgroups).reorder();
}

}  // namespace mulciber
