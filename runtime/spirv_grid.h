// Modules for devices that allow fewer workgroups than a grid has.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mulciber {

/// Adds an entry point whose workgroups each do the work of several, one after the other:
/// dispatched as `dispatched`, the module computes what `module` computes dispatched as `grid`. Its
/// gl_WorkGroupID, gl_NumWorkGroups and gl_GlobalInvocationID are those of the grid. module: one
/// compute entry point whose workgroup size is given by constants. Throws KernelError when it is
/// not.
std::vector<uint32_t> spread_grid(std::span<const uint32_t> module,
                                  const std::array<uint32_t, 3>& grid,
                                  const std::array<uint32_t, 3>& dispatched);

}  // namespace mulciber
