// SPIR-V of every row of kernels.def, embedded at build time: compiled by the build's glslang, or
// taken from the repository (shaders/pinned) where this glslang cannot compile the row.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mulciber {

struct SpirvModule {
  const char* id;                   // the row's id
  std::span<const uint32_t> words;  // empty where the build leaves the row out
  bool pinned;                      // the module comes from shaders/pinned
};

std::span<const SpirvModule> spirv_modules();
/// Versions of the build's shader compiler and of the one that made the pinned modules, in
/// glslang's notation: "11:12.0.0". "" where there was none.
const char* local_glslang();
const char* pinned_glslang();

/// Says which compilers made the modules of this build: "11:12.0.0", "11:16.6.0 (pinned)", or
/// "11:12.0.0, and 11:16.6.0 (pinned) for 8 of 184 rows".
std::string describe_shader_compilers();

}  // namespace mulciber
