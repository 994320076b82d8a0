// The public interface (mulciber/mulciber.h) over devices.
#pragma once

#include "mulciber/mulciber.h"
#include "runtime/device.h"

namespace mulciber {

/// DeviceOptions as the runtime takes them.
DeviceSettings device_settings(const DeviceOptions& options);
DeviceDescription describe(const Capabilities& capabilities);

}  // namespace mulciber
