// Connects the public interface (mulciber/device.h) with devices.
#pragma once

#include "mulciber/device.h"
#include "runtime/device.h"

namespace mulciber {

DeviceDescription describe(const Capabilities& capabilities);

/// Returns `device`; throws DeviceError naming `where` if it is null.
std::shared_ptr<Device> given(std::shared_ptr<Device> device, const char* where);

}  // namespace mulciber
