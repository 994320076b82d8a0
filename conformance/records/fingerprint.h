// What a run of the suite tests: device, driver, shaders and the suite itself.
#pragma once

#include "conformance/records/record.h"
#include "conformance/run_case.h"
#include "runtime/device.h"

namespace mulciber::conformance {

/// `device` as opened, masks included.
Fingerprint fingerprint_of(const Device& device, const RunOptions& options);

/// 16 digits over the ids and the SPIR-V of all rows of this build: 64-bit FNV-1a.
std::string spirv_hash();
/// Those rows and what made them: "glslang 11:12.0.0, SPIR-V ddd32ccbde485313".
std::string describe_shaders();

/// "mesa_llvmpipe"; "driver 99" for one that Vulkan named later.
std::string driver_id_name(VkDriverId id);

}  // namespace mulciber::conformance
