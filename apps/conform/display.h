// The display during a run of the suite: on a terminal one line that changes, elsewhere a line per
// tenth.
#pragma once

#include <array>
#include <chrono>
#include <string>

#include "base/clock.h"
#include "conformance/records/record.h"

namespace mulciber::apps {

class ConformDisplay {
 public:
  /// `done`: how many of `total` were done in an earlier run.
  ConformDisplay(size_t total, size_t done);
  void started(const std::string& op);
  void ended(const conformance::CaseRecord& record);
  /// Redraws, when it is time.
  void draw();
  /// Removes the line.
  void clear();

 private:
  std::string status_line() const;

  size_t total_, done_, done_before_, tenth_;
  std::array<size_t, conformance::kStatusCount> counts_{};
  std::string op_;
  bool terminal_, drawn_ = false;
  Clock::time_point start_, last_{};
};

}  // namespace mulciber::apps
