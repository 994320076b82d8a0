#include "apps/conform/display.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/cli/standard_error.h"

namespace mulciber::apps {

using namespace conformance;

ConformDisplay::ConformDisplay(size_t total, size_t done)
    : total_(total),
      done_(done),
      done_before_(done),
      tenth_(total ? done * 10 / total : 0),
      terminal_(isatty(STDERR_FILENO)),
      start_(Clock::now()) {}

std::string ConformDisplay::status_line() const {
  std::string line = fmt::format("{}/{}", done_, total_);
  for (int i = 0; i < kStatusCount; ++i) {
    if (counts_[i]) line += fmt::format(", {} {}", counts_[i], name_of(static_cast<Status>(i)));
  }
  const double seconds = seconds_since(start_);
  const size_t ran = done_ - done_before_;
  if (ran > 0 && done_ < total_) {
    const double left = seconds / static_cast<double>(ran) * static_cast<double>(total_ - done_);
    line += left < 90 ? fmt::format(", about {:.0f} s left", left)
                      : fmt::format(", about {:.0f} min left", left / 60);
  }
  if (!op_.empty()) line += ": " + op_;
  return line;
}

void ConformDisplay::started(const std::string& op) { op_ = op; }

void ConformDisplay::ended(const CaseRecord& record) {
  ++done_;
  ++counts_[static_cast<size_t>(record.result.status)];
  if (!is_good(record.result.status)) {
    clear();
    tell("{}: {}: {}\n", name_of(record.result.status), record.name, record.result.detail);
  }
  if (terminal_) {
    draw();
  } else if (done_ * 10 / total_ > tenth_) {
    tenth_ = done_ * 10 / total_;
    op_.clear();
    tell("{}\n", status_line());
  }
}

void ConformDisplay::draw() {
  const auto now = Clock::now();
  if (!terminal_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  winsize size{};
  size_t width = 80;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) width = size.ws_col;
  tell("\r\x1b[K{}", status_line().substr(0, width - 1));
  std::fflush(stderr);
}

void ConformDisplay::clear() {
  if (!drawn_) return;
  tell("\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace mulciber::apps
