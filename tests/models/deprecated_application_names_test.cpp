// Deprecated names of what an application lends: each is the name that replaced it.
#include <type_traits>

#include "mulciber/host_device.h"
#include "mulciber/mulciber_c.h"
#include "tests/catch.h"

using namespace mulciber;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("Deprecated names of what an application lends are those that replaced them") {
  static_assert(std::is_same_v<HostPhysicalDevice, ApplicationPhysicalDevice>);
  static_assert(std::is_same_v<HostQueue, ApplicationQueue>);
  static_assert(std::is_same_v<HostMemory, ApplicationMemory>);
  static_assert(std::is_same_v<HostAllocator, ApplicationAllocator>);
  static_assert(std::is_same_v<HostDevice, ApplicationDevice>);
  static_assert(std::is_same_v<HostImage, ApplicationImage>);
  static_assert(std::is_same_v<HostBuffer, ApplicationBuffer>);
  static_assert(std::is_same_v<MulciberHostImage, MulciberApplicationImage>);
  static_assert(std::is_same_v<MulciberHostBuffer, MulciberApplicationBuffer>);
  CHECK(MULCIBER_ERROR_HOST == MULCIBER_ERROR_APPLICATION);
}

#pragma GCC diagnostic pop
