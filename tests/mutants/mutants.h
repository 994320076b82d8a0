// Kernels broken on purpose, from mutants.txt.
#pragma once

#include <cstdint>
#include <span>

namespace mulciber::tests {

struct Mutant {
  const char* name;
  const char* row;                  // of kernels.def, whose flags it is compiled with
  const char* imitates;             // the fault
  const char* unseen;               // "DEVICE, why": where it has no effect; or ""
  std::span<const uint32_t> spirv;  // empty: this build's glslang cannot compile it
};

/// None where the build had no glslang.
std::span<const Mutant> mutants();

}  // namespace mulciber::tests
