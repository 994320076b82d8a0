// The subject of a run of the suite: device, driver, shaders and the suite itself.
#pragma once

#include "conformance/records/record.h"
#include "conformance/run_case.h"
#include "runtime/device.h"

namespace mulciber::conformance {

/// `device`: as opened, including masks.
Fingerprint fingerprint_of(const Device& device, const RunOptions& options);

/// 16 digits: a 64-bit FNV-1a hash of the ids and SPIR-V of all rows of this build.
std::string spirv_hash();
/// The rows' hash and their compiler: "glslang 11:12.0.0, SPIR-V ddd32ccbde485313".
std::string describe_shaders();

/// "mesa_llvmpipe"; "driver 99" for an id that newer versions of Vulkan named.
std::string driver_id_name(VkDriverId id);

}  // namespace mulciber::conformance
