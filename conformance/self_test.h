// The self-test: once per driver version, every row that a device may choose computes one small
// case. A row that fails is put on the driver's deny list (runtime/deny_list.h), and the next row
// serves.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/op_case.h"

namespace mulciber::conformance {

/// The case that tests a row: a small sample of its op, exact if possible. Throws KernelError when
/// no sample suits the row.
OpCase self_test_case(const Kernel& row);

/// Rows that selection may take on a device and that have no verdict there, likeliest first.
std::vector<const Kernel*> untested_rows(const Capabilities& device);

struct SelfTestOptions {
  double seconds = 2;  // no row begins later; the rest is tested next time
  /// Number of rows tested in parallel, each on its own device; 0: one per core (at most 4) where
  /// the driver compiles and computes on the cores, else 1.
  unsigned threads = 0;
  /// Tests also rows with a verdict, and waits for another process that is testing.
  bool again = false;
  std::function<bool()> cancelled;
  std::function<void(const Kernel& row, size_t done, size_t total)> progress;  // one call at a time
  /// Runs another kernel instead of a row, to test the self-test.
  std::function<const Kernel&(const Kernel& row)> stand_in;
};

struct SelfTestReport {
  struct Failure {
    std::string row, reason;
  };
  /// Verdicts are on disk; false where another process tests, or there is no folder.
  bool kept = false;
  size_t passed = 0;
  size_t untested = 0;  // for lack of time or memory
  std::vector<Failure> failures;
  double seconds = 0;
};

/// Tests on a separate device, so that counters, profiles and memory of other devices do not show
/// it. Open devices keep their choices; devices opened later know the verdicts. Without `again`
/// nothing is done where verdicts cannot be stored. Throws DeviceError when no device opens.
SelfTestReport self_test(const DeviceOptions& device_options, const SelfTestOptions& options = {});

}  // namespace mulciber::conformance
