// The device that tests share: opening one takes longer than most tests. It runs every row,
// whatever verdict an earlier self-test stored.
#pragma once

#include "runtime/device.h"

namespace mulciber::tests {

inline Device& shared_device() {
  static std::unique_ptr<Device> device =
      Device::open(options_from_environment({.ignore_verdicts = true}));
  return *device;
}

/// The shared device in the form that the public interface takes.
inline std::shared_ptr<Device> shared_handle() {
  return {&shared_device(), [](Device*) {}};
}

}  // namespace mulciber::tests
