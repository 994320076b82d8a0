// What a run of the suite tests: device, driver, shaders and the suite itself.
#pragma once

#include "conformance/records/record.h"
#include "conformance/run_case.h"
#include "runtime/device.h"

namespace mulciber::conformance {

/// `device` as opened, masks included.
Fingerprint fingerprint_of(const Device& device, const RunOptions& options);

/// "mesa_llvmpipe"; "driver 99" for one that Vulkan named later.
std::string driver_id_name(VkDriverId id);

}  // namespace mulciber::conformance
