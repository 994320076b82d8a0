// Runs one case on one row and judges it. Everything that a single look misses is looked for:
// outputs poisoned before each run, guard bytes around every buffer, random offsets, repetition bit
// by bit, once more from a fresh recording, and with workgroups and subgroups in other orders.
#pragma once

#include <cstdint>
#include <functional>

#include "conformance/op_case.h"
#include "conformance/orders.h"
#include "conformance/records/status.h"

namespace mulciber::conformance {

/// Faults on purpose, to test that the suite finds such.
enum class Fault : uint8_t {
  kNone,
  kCrash,         // the process dies
  kHang,          // the case never ends
  kCorrupt,       // one element of the first output is wrong in every run
  kFlaky,         // one element is wrong in the last run alone
  kOrder,         // one element is wrong in every other order of workgroups and subgroups
  kWriteOutside,  // a word behind the last input changes
  kLoseDevice,    // the device is lost
  kMisuse,        // Vulkan is used against its rules, which shows under validation alone
};

struct RunOptions {
  uint32_t repeats = 20;  // runs compared bit by bit, at least 1
  uint64_t seed = 0;      // of the inputs and offsets
  Fault fault = Fault::kNone;
  std::vector<Order> orders = {};  // beside the device's own, in which the bits must be the same
};

/// What is at hand where a fault strikes; what a kind of case lacks is left empty, and such a fault
/// does nothing.
struct FaultTargets {
  std::function<void()> corrupt;        // makes a result wrong
  std::function<void()> write_outside;  // changes a guard
};
/// Does what a fault does in one run of a case, after the kernels ran and before results are read.
void inject(Fault fault, Device& device, const FaultTargets& targets, bool last_run);

/// What `body` gives, and how long it took. Errors become statuses; throws nothing but
/// std::bad_alloc.
CaseResult guarded(const std::function<CaseResult()>& body);

/// `row`: the row to run, or null for what selection takes. `tolerance`: what the quality
/// of a row of results is held to (see kernels.def); the row's own when 0.
/// Throws nothing but std::bad_alloc: errors become statuses.
CaseResult run_case(Device& device, const OpCase& op_case, const Kernel* row,
                    const RunOptions& options, double tolerance = 0);

}  // namespace mulciber::conformance
