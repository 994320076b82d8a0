// Kernels broken on purpose, from mutants.txt.
#pragma once

#include <cstdint>
#include <span>

namespace mulciber::tests {

struct Mutant {
  const char* name;
  const char* row;       // in kernels.def, whose flags it is compiled with
  const char* imitates;  // the fault
  /// "DEVICE, why": where the mutant has no effect; or "".
  const char* unseen;
  /// Empty where this build's glslang cannot compile the mutant.
  std::span<const uint32_t> spirv;
};

/// All mutants; none where the build had no glslang.
std::span<const Mutant> mutants();

}  // namespace mulciber::tests
