#include "runtime/spirv_modules.h"

#include <fmt/format.h>

#include <algorithm>

namespace mulciber {

std::string describe_shader_compilers() {
  const std::span<const SpirvModule> modules = spirv_modules();
  const auto pinned = std::ranges::count_if(modules, &SpirvModule::pinned);
  if (pinned == 0) return local_glslang();
  std::string other = fmt::format("{} (pinned)", pinned_glslang());
  if (pinned == std::ssize(modules)) return other;
  return fmt::format("{}, and {} for {} of {} rows", local_glslang(), other, pinned,
                     modules.size());
}

}  // namespace mulciber
