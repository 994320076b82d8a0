// The self-test of a library that was built without it: this file takes the place of the room.
#include "mulciber/device.h"

namespace mulciber {

SelfTest self_test(const DeviceOptions&, double) {
  throw SettingError("self_test()", "this build has no self-test: MULCIBER_SELF_TEST",
                     "build the library with -DMULCIBER_SELF_TEST=ON");
}

}  // namespace mulciber
