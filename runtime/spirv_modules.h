// SPIR-V of every row of kernels.def, embedded at build time.
#pragma once

#include <cstdint>
#include <span>

namespace mulciber {

struct SpirvModule {
  const char* id;                   // the row's id
  std::span<const uint32_t> words;  // empty where this build's shader compiler lacks a feature
};

std::span<const SpirvModule> spirv_modules();

}  // namespace mulciber
