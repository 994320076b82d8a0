// The public interface (mulciber/device.h) over devices.
#pragma once

#include "mulciber/device.h"
#include "runtime/device.h"

namespace mulciber {

DeviceDescription describe(const Capabilities& capabilities);

/// The device that a caller gave to `where`; DeviceError if there is none.
std::shared_ptr<Device> given(std::shared_ptr<Device> device, const char* where);

}  // namespace mulciber
