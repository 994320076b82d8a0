// Writes a case as a folder that can be built on its own: shaders, constants, inputs, expected
// results, and a C program that needs nothing but Vulkan.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/suite.h"

namespace mulciber::conformance {

/// Writes the folder of a case as `device` would run it: repro.c and its headers, case.h
/// (dispatches, constants, buffer offsets), the SPIR-V of each row, inputs, expected outputs,
/// CMakeLists.txt, README.md. Nothing runs on the device. `result`: the case's result, for
/// README.md; null when it is unknown. Returns the files' names. Throws KernelError or ShapeError
/// when the device or the row cannot serve the case, ModelError when a file cannot be written or
/// the case is more than one program.
std::vector<std::string> write_repro(Device& device, const SuiteCase& suite_case, uint64_t seed,
                                     const CaseResult* result, const std::filesystem::path& folder);

}  // namespace mulciber::conformance
