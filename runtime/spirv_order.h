// Modules whose workgroups and subgroups are numbered in another order. Software drivers run them
// one after the other, in rising order of the device's own numbers, so that a barrier that is
// missing may never show; numbered otherwise, what reads runs before what writes.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mulciber {

struct Order {
  enum Kind : uint8_t { kForward, kReverse, kRandom };
  Kind kind = kForward;  // the device's own
  uint32_t seed = 0;     // of kRandom
  auto operator<=>(const Order&) const = default;
};
/// "forward", "reverse", "random 3".
std::string name_of(const Order& order);

/// What of a workgroup is numbered anew: `count` subgroups of `size` invocations each, from the
/// first. Those behind, where the workgroup holds no whole number of subgroups, keep their places.
struct SubgroupBlocks {
  uint32_t count = 1, size = 1;
};

/// The module with a one-to-one mapping between the device's numbers and those that it sees:
/// gl_WorkGroupID along each axis of the grid; gl_SubgroupID, and gl_LocalInvocationIndex and
/// gl_LocalInvocationID by whole subgroups, so that subgroups hold the invocations that they held;
/// gl_GlobalInvocationID in accordance with both. A grid may have up to 2^31 workgroups along an
/// axis. module: one compute entry point, its workgroups extended along x alone, as those of all
/// rows. Throws KernelError when it is no such module.
std::vector<uint32_t> reorder(std::span<const uint32_t> module, const Order& order,
                              const SubgroupBlocks& subgroups);

}  // namespace mulciber
