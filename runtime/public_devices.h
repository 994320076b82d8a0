// The public interface (mulciber/device.h) over devices.
#pragma once

#include "mulciber/device.h"
#include "runtime/device.h"

namespace mulciber {

DeviceDescription describe(const Capabilities& capabilities);

}  // namespace mulciber
