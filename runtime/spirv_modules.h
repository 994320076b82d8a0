// SPIR-V of every row of kernels.def, embedded at build time: compiled by the glslang of the build,
// or kept in the repository (shaders/pinned) for those that this glslang cannot compile.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mulciber {

struct SpirvModule {
  const char* id;                   // the row's id
  std::span<const uint32_t> words;  // empty where the build was told to leave the row out
  bool pinned;                      // from shaders/pinned
};

std::span<const SpirvModule> spirv_modules();
/// The build's shader compiler, and the one that made the pinned modules, as glslang says it:
/// "11:12.0.0". "" where there was none.
const char* local_glslang();
const char* pinned_glslang();

/// Which compilers made the modules of this build: "11:12.0.0", "11:16.6.0 (pinned)", or
/// "11:12.0.0, and 11:16.6.0 (pinned) for 8 of 184 rows".
std::string describe_shader_compilers();

}  // namespace mulciber
