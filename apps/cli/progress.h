// A progress bar on standard error, drawn only when that is a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/clock.h"

namespace mulciber::apps {

class Progress {
 public:
  /// total: 0 when unknown; then only the count is shown.
  Progress(std::string what, size_t total);
  void update(size_t done);
  /// Removes the bar.
  void finish();

 private:
  std::string what_;
  size_t total_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_, last_;
};

}  // namespace mulciber::apps
