// Runs one case on one row and judges it. To find faults that a single run misses, outputs are
// poisoned before each run, guard bytes surround every buffer, offsets are random, and runs are
// repeated and compared bit by bit: once more from a fresh recording, and with workgroups and
// subgroups in other orders.
#pragma once

#include <cstdint>
#include <functional>

#include "conformance/op_case.h"
#include "conformance/orders.h"
#include "conformance/records/status.h"

namespace mulciber::conformance {

/// Deliberate faults, to test that the suite finds them.
enum class Fault : uint8_t {
  kNone,
  kCrash,         // the process dies
  kHang,          // the case never ends
  kCorrupt,       // one element of the first output is wrong in every run
  kFlaky,         // one element is wrong in the last run alone
  kOrder,         // one element is wrong in every other order of workgroups and subgroups
  kWriteOutside,  // a word after the last input changes
  kLoseDevice,    // the device is lost
  kMisuse,        // invalid use of Vulkan, which only validation shows
};

struct RunOptions {
  uint32_t repeats = 20;  // runs to compare bit by bit, at least 1
  uint64_t seed = 0;      // for inputs and offsets
  Fault fault = Fault::kNone;
  std::vector<Order> orders = {};  // other orders, in which results must be bitwise equal
};

/// Actions of faults; an action that a kind of case lacks is empty, and the fault then does
/// nothing.
struct FaultTargets {
  std::function<void()> corrupt;        // makes a result wrong
  std::function<void()> write_outside;  // changes a guard
};
/// Performs a fault in one run of a case, after the kernels ran and before results are read.
void inject(Fault fault, Device& device, const FaultTargets& targets, bool last_run);

/// Returns the result of `body` with its time. Errors become statuses; throws nothing but
/// std::bad_alloc.
CaseResult guarded(const std::function<CaseResult()>& body);

/// `row`: the row to run, or null for the one that selection takes. `tolerance`: the expected
/// quality of a row of results (see kernels.def); the row's own when 0. Throws nothing but
/// std::bad_alloc: errors become statuses.
CaseResult run_case(Device& device, const OpCase& op_case, const Kernel* row,
                    const RunOptions& options, double tolerance = 0);

}  // namespace mulciber::conformance
