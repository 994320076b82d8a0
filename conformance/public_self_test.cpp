// The self-test of the public interface.
#include "conformance/self_test.h"
#include "runtime/public_devices.h"

namespace mulciber {

SelfTest self_test(const DeviceOptions& options, double seconds) {
  SelfTest result;
  if (conformance::untested_rows(Device::open(options)->capabilities()).empty()) return result;
  conformance::SelfTestOptions given;
  given.seconds = seconds;
  const conformance::SelfTestReport report = conformance::self_test(options, given);
  result.passed = report.passed;
  result.untested = report.untested;
  for (const auto& [row, reason] : report.failures) result.failures.push_back(row + ": " + reason);
  return result;
}

}  // namespace mulciber
