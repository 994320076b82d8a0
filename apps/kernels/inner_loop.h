// The cost of one pass through a kernel's inner loop, counted in a driver's disassembly.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace mulciber::apps {

/// The loop with the most multiply-adds of its own, without those of loops inside it. Inner loops
/// are counted too, each as passed once, because code does not show how often it runs.
struct InnerLoop {
  double multiply_adds = 0;   // in one pass, for each lane of the subgroup
  uint32_t instructions = 0;  // issued in the pass, waits and nops among them

  // Classes of work. Where one instruction holds several operations (RDNA 3's dual issue, Bifrost's
  // tuples, V3D), each operation counts, and classes add up to more than instructions. A product
  // and a sum that the compiler leaves apart are arithmetic, except on V3D, which has no
  // multiply-adds.
  uint32_t fma = 0;         // multiply-adds of lanes, packed ones and dot products among them
  uint32_t matrix = 0;      // multiply-adds of the whole subgroup
  uint32_t arithmetic = 0;  // other work of lanes: addresses, conversions, exchanges
  uint32_t memory = 0;      // global memory, and descriptors read by lanes
  uint32_t shared = 0;      // shared memory, and exchanges that go through its unit
  uint32_t scalar = 0;      // one result for all lanes, constants and uniform loads among them
  uint32_t control = 0;     // branches, masks of divergence, barriers
  uint32_t nops = 0;        // waits and nops, which only take time
  uint32_t scratch = 0;     // spilled registers and private arrays
};

/// representation: the driver's name of the text, from
/// vkGetPipelineExecutableInternalRepresentationsKHR; text: the whole disassembly; subgroup_size:
/// the lanes by which instructions of several lanes are counted; has_scratch: false where the
/// driver reports no private memory per invocation, for which some accesses could be mistaken. No
/// value where the text belongs to no known instruction set, or no loop multiplies.
std::optional<InnerLoop> inner_loop(std::string_view representation, std::string_view text,
                                    uint32_t subgroup_size, bool has_scratch = true);

}  // namespace mulciber::apps
