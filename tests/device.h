// The device that tests share: opening one takes longer than most tests.
#pragma once

#include "runtime/device.h"

namespace mulciber::tests {

inline Device& shared_device() {
  static std::unique_ptr<Device> device = Device::open({});
  return *device;
}

}  // namespace mulciber::tests
