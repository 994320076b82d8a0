// Choice by measurement: times every row that could serve a problem and remembers the quickest
// (runtime/choices.h).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

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
};

/// A problem and its candidates, in the table's order.
struct Tuned {
  Problem problem;
  size_t times = 0;  // that the model asked
  std::vector<std::pair<const Kernel*, double>> milliseconds;
  std::vector<std::pair<const Kernel*, std::string>> refused;  // by the driver, and in which words
  const Kernel* chosen = nullptr;
};

struct TuneReport {
  std::vector<Tuned> tuned;
  size_t known = 0;   // measured before
  size_t alone = 0;   // problems that a single row serves
  size_t left = 0;    // for want of time or memory, or because the driver refuses every row
  bool kept = false;  // on disk; false where there is no folder to write to
  double seconds = 0;
};

/// How many of the problems that tune() would measure have no choice yet. Cheap: no device is
/// opened, and nothing is timed.
size_t untuned(const Capabilities& device, const AskedProblems& asked);

/// Measures on a device of its own, with inputs drawn at random: what was asked most first, then
/// the same with fewer rows (shorter passes over a prompt). Throws DeviceError when no device
/// opens.
TuneReport tune(const DeviceOptions& device_options, const AskedProblems& asked,
                const TuneOptions& options = {});

}  // namespace mulciber::conformance
