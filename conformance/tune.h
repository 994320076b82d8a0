// Choice by measurement: times every row that could serve a problem and stores the fastest
// (runtime/choices.h).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/op_case.h"
#include "runtime/choices.h"
#include "runtime/device.h"

namespace mulciber::conformance {

struct TuneOptions {
  double seconds = 2;             // no problem begins later; the rest is measured next time
  double seconds_per_row = 0.02;  // at least
  /// A row replaces the first one only when it needs at most this share of its time: a smaller gain
  /// may be noise.
  double clear_gain = 0.97;
  /// Measures also problems that were measured before.
  bool again = false;
  std::function<bool()> cancelled;
  std::function<void(size_t done, size_t total)> progress;
  /// Gives the milliseconds of a case on a row, instead of time_case(): for tests.
  std::function<double(Device&, const OpCase&, const Kernel&)> timer;
};

/// A problem and its candidates, in the table's order.
struct Tuned {
  Problem problem;
  size_t times = 0;  // number of times that the model asked
  std::vector<std::pair<const Kernel*, double>> milliseconds;
  std::vector<std::pair<const Kernel*, std::string>> refused;  // failed rows, with their errors
  const Kernel* chosen = nullptr;
};

/// A measurement that failed: the case of a problem could not be made (no row), or could not be
/// timed on a row.
struct Unmeasured {
  Problem problem;
  const Kernel* row = nullptr;
  std::string reason;
};
/// Describes failures in a line that names the first one: "3 measurements failed, ...; the first:
/// norm_matmul f32 q4_1 576,1536 on norm_matvec_subgroup_f32_blocks: could not make the pipeline".
std::string describe(const std::vector<Unmeasured>& failed);

struct TuneReport {
  std::vector<Tuned> tuned;
  std::vector<Unmeasured> failed;
  size_t known = 0;   // measured before
  size_t alone = 0;   // problems that only one row serves
  size_t left = 0;    // for lack of time or memory, or because no row could be timed
  bool kept = false;  // stored on disk; false where there is no folder to write to
  double seconds = 0;
};

/// A problem that tune() would time on any device.
struct ToTime {
  Problem problem;  // without facts where it is a shorter pass
  size_t times = 0;
  bool shorter = false;  // a shorter pass than asked for
};
/// The problems in order of their number of requests, then their shorter passes over a prompt.
std::vector<ToTime> problems_to_time(const AskedProblems& asked);

/// Number of problems that tune() would measure and that have no choice yet. Cheap: opens no device
/// and times nothing.
size_t untuned(const Capabilities& device, const AskedProblems& asked);

/// Measures on a separate device, with random inputs, in the order of problems_to_time(). A failure
/// is noted in the report and throws nothing: the first row serves, like without measurement. A
/// loss of the device ends the measurement, and the row on which it was lost is not chosen for that
/// problem. Throws DeviceError when no device opens.
TuneReport tune(const DeviceOptions& device_options, const AskedProblems& asked,
                const TuneOptions& options = {});

}  // namespace mulciber::conformance
