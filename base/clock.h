// Elapsed time in seconds.
#pragma once

#include <chrono>

namespace mulciber {

using Clock = std::chrono::steady_clock;

/// Seconds from `start` until now.
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace mulciber
