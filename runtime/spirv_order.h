// Modules whose workgroups and subgroups have other numbers. Software drivers run them one after
// the other in rising order of the device's own numbers, so that a missing barrier may never show.
// With other numbers, a reader may run before its writer.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mulciber {

struct Order {
  enum Kind : uint8_t { kForward, kReverse, kRandom };
  Kind kind = kForward;  // the device's own order
  uint32_t seed = 0;     // for kRandom
  auto operator<=>(const Order&) const = default;
};
/// "forward", "reverse", "random 3".
std::string name_of(const Order& order);

/// The invocations of a workgroup that are renumbered: its first `count` subgroups of `size`
/// invocations each. If the workgroup is not a whole number of subgroups, the last invocations keep
/// their numbers.
struct SubgroupBlocks {
  uint32_t count = 1, size = 1;
};

/// Adds a one-to-one mapping between the device's numbers and those that the module sees:
/// gl_WorkGroupID along each axis of the grid; gl_SubgroupID, gl_LocalInvocationIndex and
/// gl_LocalInvocationID by whole subgroups, so that each subgroup keeps its invocations;
/// gl_GlobalInvocationID to match. A grid may have up to 2^31 workgroups along an axis. module: one
/// compute entry point whose workgroups extend along x alone, as in all rows. Throws KernelError
/// when it is not.
std::vector<uint32_t> reorder(std::span<const uint32_t> module, const Order& order,
                              const SubgroupBlocks& subgroups);

}  // namespace mulciber
