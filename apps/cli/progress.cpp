#include "apps/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/cli/standard_error.h"
#include "base/clock.h"

namespace mulciber::apps {

Progress::Progress(std::string what, size_t total)
    : what_(std::move(what)),
      total_(total),
      terminal_(isatty(STDERR_FILENO)),
      start_(Clock::now()) {}

void Progress::update(size_t done) {
  // Short work needs no bar, and a terminal needs at most ten updates a second.
  const auto now = Clock::now();
  if (!terminal_ || now - start_ < std::chrono::milliseconds(500) ||
      now - last_ < std::chrono::milliseconds(100)) {
    return;
  }
  last_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / seconds;
  if (total_ == 0) {
    tell("\r{}: {} lines, {:.1f}/s ", what_, done, rate);
  } else {
    constexpr size_t kWidth = 30;
    const size_t filled = kWidth * std::min(done, total_) / total_;
    const double left = rate > 0 ? static_cast<double>(total_ - std::min(done, total_)) / rate : 0;
    tell("\r{} [{}{}] {}/{}, {:.1f}/s, {:.0f} s left ", what_, std::string(filled, '#'),
         std::string(kWidth - filled, '.'), done, total_, rate, left);
  }
  std::fflush(stderr);
}

void Progress::finish() {
  if (!drawn_) return;
  tell("\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace mulciber::apps
