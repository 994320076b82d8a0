// Reads buffers, push constants and shared memory from a SPIR-V module, so that C++ need not repeat
// them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/kernel.h"

namespace mulciber {

/// Throws KernelError (naming `id`) when the words are not a SPIR-V compute module that we
/// understand.
Reflection reflect_spirv(std::string_view id, std::span<const uint32_t> words);

}  // namespace mulciber
