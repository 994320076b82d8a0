#include "runtime/spirv_grid.h"

#include "runtime/spirv_entry.h"

namespace mulciber {

/// for (i = this workgroup's number; i < workgroups of the grid; i += workgroups dispatched) {
/// set; main(); barrier(); }
std::vector<uint32_t> spread_grid(std::span<const uint32_t> module,
                                  const std::array<uint32_t, 3>& grid,
                                  const std::array<uint32_t, 3>& dispatched) {
  using namespace spirv;
  EntryWrapper entry(module);
  for (const uint32_t which :
       {kBuiltInWorkgroupId, kBuiltInNumWorkgroups, kBuiltInGlobalInvocationId})
    entry.choose(which);
  const uint32_t uint_type = entry.uint_type(), vector = entry.vector_type();
  const uint32_t start = entry.fresh(), header = entry.fresh(), test = entry.fresh(),
                 body = entry.fresh(), next = entry.fresh(), end = entry.fresh();
  const uint32_t gx = entry.constant(grid[0]), gy = entry.constant(grid[1]),
                 gz = entry.constant(grid[2]);
  const uint32_t total = entry.constant(grid[0] * grid[1] * grid[2]);
  const uint32_t dx = entry.constant(dispatched[0]),
                 dxy = entry.constant(dispatched[0] * dispatched[1]);
  const uint32_t step = entry.constant(dispatched[0] * dispatched[1] * dispatched[2]);
  const uint32_t scope = entry.constant(kScopeWorkgroup),
                 semantics = entry.constant(kAcquireReleaseWorkgroupMemory);
  const auto number = [&](uint32_t op, uint32_t a, uint32_t b) {
    return entry.value(op, uint_type, {a, b});
  };
  const auto label = [&](uint32_t id) { entry.add(kOpLabel, {id}); };

  const uint32_t own = entry.load(kBuiltInWorkgroupId);
  const uint32_t x = number(kOpCompositeExtract, own, 0), y = number(kOpCompositeExtract, own, 1),
                 z = number(kOpCompositeExtract, own, 2);
  const uint32_t row = number(kOpIAdd, x, number(kOpIMul, y, dx));
  const uint32_t first = number(kOpIAdd, row, number(kOpIMul, z, dxy));
  if (entry.builtin(kBuiltInNumWorkgroups))
    entry.store(kBuiltInNumWorkgroups, entry.value(kOpCompositeConstruct, vector, {gx, gy, gz}));
  entry.add(kOpBranch, {header});
  label(header);
  const uint32_t i = entry.fresh(), following = entry.fresh();
  entry.add(kOpPhi, {uint_type, i, first, start, following, next});
  entry.add(kOpLoopMerge, {end, next, 0});
  entry.add(kOpBranch, {test});
  label(test);
  entry.add(kOpBranchConditional,
            {entry.value(kOpULessThan, entry.bool_type(), {i, total}), body, end});
  label(body);
  const uint32_t lines = number(kOpUDiv, i, gx);
  const uint32_t group =
      entry.value(kOpCompositeConstruct, vector,
                  {number(kOpUMod, i, gx), number(kOpUMod, lines, gy), number(kOpUDiv, lines, gy)});
  entry.store(kBuiltInWorkgroupId, group);
  if (entry.builtin(kBuiltInGlobalInvocationId))
    entry.store_global_id(group, entry.load(kBuiltInLocalInvocationId));
  entry.call_module();
  // The next iteration writes to shared memory that other invocations may still read.
  entry.add(kOpControlBarrier, {scope, scope, semantics});
  entry.add(kOpBranch, {next});
  label(next);
  entry.add(kOpIAdd, {uint_type, following, i, step});
  entry.add(kOpBranch, {header});
  label(end);
  return entry.finish(start);
}

}  // namespace mulciber
