// Choice by measurement: times every row that could serve a problem and remembers the quickest
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
  double seconds = 2;             // no problem begins later; what is left is measured next time
  double seconds_per_row = 0.02;  // at least
  /// A row takes the place of the one that stands first only when it needs at most this share of
  /// its time: less may be noise.
  double clear_gain = 0.97;
  /// Measure what was measured before, too.
  bool again = false;
  std::function<bool()> cancelled;
  std::function<void(size_t done, size_t total)> progress;
  /// Milliseconds of a case on a row, in place of time_case(): for tests.
  std::function<double(Device&, const OpCase&, const Kernel&)> timer;
};

/// A problem and its candidates, in the table's order.
struct Tuned {
  Problem problem;
  size_t times = 0;  // that the model asked
  std::vector<std::pair<const Kernel*, double>> milliseconds;
  std::vector<std::pair<const Kernel*, std::string>> refused;  // what failed, and in which words
  const Kernel* chosen = nullptr;
};

/// What could not be measured: the case of a problem could not be made (no row), or could not be
/// timed on one.
struct Unmeasured {
  Problem problem;
  const Kernel* row = nullptr;
  std::string reason;
};
/// In a line, which names the first: "3 measurements failed, ...; the first: norm_matmul f32 q4_1
/// 576,1536 on norm_matvec_subgroup_f32_blocks: could not make the pipeline".
std::string describe(const std::vector<Unmeasured>& failed);

struct TuneReport {
  std::vector<Tuned> tuned;
  std::vector<Unmeasured> failed;
  size_t known = 0;   // measured before
  size_t alone = 0;   // problems that a single row serves
  size_t left = 0;    // for want of time or memory, or because no row could be timed
  bool kept = false;  // on disk; false where there is no folder to write to
  double seconds = 0;
};

/// A problem that tune() would time, whatever the device.
struct ToTime {
  Problem problem;  // without facts where it is a shorter pass
  size_t times = 0;
  bool shorter = false;  // than what was asked
};
/// What was asked most first, then the same with shorter passes over a prompt.
std::vector<ToTime> problems_to_time(const AskedProblems& asked);

/// How many of the problems that tune() would measure have no choice yet. Cheap: no device is
/// opened, and nothing is timed.
size_t untuned(const Capabilities& device, const AskedProblems& asked);

/// Measures on a device of its own, with inputs drawn at random, in the order of
/// problems_to_time(). What fails is noted in the report and throws nothing: the row that stands
/// first serves, as if nothing had been measured. A loss of the device ends the measuring, and the
/// row on which it was lost is not chosen for that problem. Throws DeviceError when no device
/// opens.
TuneReport tune(const DeviceOptions& device_options, const AskedProblems& asked,
                const TuneOptions& options = {});

}  // namespace mulciber::conformance
