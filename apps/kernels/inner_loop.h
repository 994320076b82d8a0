// What one pass through a kernel's inner loop costs, counted in the disassembly that a driver
// gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mulciber::apps {

/// The loop with the most multiply-adds of its own: of its code, without that of loops inside it.
/// Those are counted too, each as passed once, since code does not say how often it runs.
struct InnerLoop {
  double multiply_adds = 0;   // that one pass does for each lane of the subgroup
  uint32_t instructions = 0;  // issued in it, waits and nops among them

  // What they do. Where one instruction holds several operations (RDNA 3's dual issue, Bifrost's
  // tuples, V3D), each operation counts, and classes add up to more than instructions. A product
  // and a sum that the compiler leaves apart are arithmetic, but on V3D, which has nothing else.
  uint32_t fma = 0;         // multiply-adds of lanes, packed ones and dot products among them
  uint32_t matrix = 0;      // multiply-adds of the whole subgroup
  uint32_t arithmetic = 0;  // all else that lanes compute: addresses, conversions, exchanges
  uint32_t memory = 0;      // global memory, and descriptors read by lanes
  uint32_t shared = 0;      // shared memory, and exchanges that go through its unit
  uint32_t scalar = 0;      // one result for all lanes, constants and uniform loads among them
  uint32_t control = 0;     // branches, masks of divergence, barriers
  uint32_t nops = 0;        // nothing but time: waits and nops
  uint32_t scratch = 0;     // spilled registers and private arrays
};

/// representation: the driver's name of it, as vkGetPipelineExecutableInternalRepresentationsKHR
/// says; text: the whole disassembly; subgroup_size: over how many lanes an instruction of several
/// lanes is counted; has_scratch: false where the driver says that an invocation has no memory of
/// its own, which some accesses look like. Nothing where the text is no known instruction set's, or
/// no loop multiplies.
std::optional<InnerLoop> inner_loop(std::string_view representation, std::string_view text,
                                    uint32_t subgroup_size, bool has_scratch = true);

}  // namespace mulciber::apps
