// The self-test: once per driver version, every row that a device may choose computes one small
// case. What fails is put on the driver's deny-list (runtime/deny_list.h), and the next row serves.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/op_case.h"

namespace mulciber::conformance {

/// The case that a row is tested with: a small sample of its op, exact where there is such a one.
/// Throws KernelError when no sample suits the row.
OpCase self_test_case(const Kernel& row);

/// Rows that selection may take on a device and that were neither passed nor denied there,
/// likeliest first.
std::vector<const Kernel*> untested_rows(const Capabilities& device);

struct SelfTestOptions {
  double seconds = 2;  // no row begins later; what is left is tested next time
  /// How many rows are tested at a time, on a device each; 0: as many as there are cores (4 at
  /// most) where the driver compiles and computes on them, else 1.
  unsigned threads = 0;
  /// Test rows that have a verdict too, and wait for another process that is testing.
  bool again = false;
  std::function<bool()> cancelled;
  std::function<void(const Kernel& row, size_t done, size_t total)> progress;  // one call at a time
  /// Runs another kernel in place of a row, to test the self-test.
  std::function<const Kernel&(const Kernel& row)> stand_in;
};

struct SelfTestReport {
  struct Failure {
    std::string row, reason;
  };
  /// Verdicts are on disk; false where another process tests, or there is no folder.
  bool kept = false;
  size_t passed = 0;
  size_t untested = 0;  // for want of time or memory
  std::vector<Failure> failures;
  double seconds = 0;
};

/// Tests on a device of its own, so that nothing of it shows in counters, profiles and memory of
/// others. Devices that are open keep their choices; those opened later know the verdicts. Without
/// `again` nothing is done where verdicts cannot be kept. Throws DeviceError when no device opens.
SelfTestReport self_test(const DeviceOptions& device_options, const SelfTestOptions& options = {});

}  // namespace mulciber::conformance
