#include "apps/chat/console.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "apps/cli/command.h"

namespace mulciber::apps {

Console::Console() : terminal_(isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {}

std::optional<std::string> Console::read_line(std::string_view prompt) {
  // std::getline would wait on through Ctrl-C; poll() returns. It is not woken by the signal
  // itself, which may come just before it or to a thread of the driver, but by its timeout.
  constexpr int kLookAgain = 50;  // ms
  const auto show = [&] {
    if (terminal_) std::fwrite(prompt.data(), 1, prompt.size(), stderr), std::fflush(stderr);
  };
  show();
  while (true) {
    if (const size_t end = buffer_.find('\n');
        end != buffer_.npos || (ended_ && !buffer_.empty())) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end == buffer_.npos ? end : end + 1);
      return line;
    }
    if (ended_) {
      if (terminal_) std::fputs("\n", stderr);
      return std::nullopt;
    }
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&input, 1, kLookAgain);
    if (interrupted()) {
      clear_interrupt();
      if (!terminal_) return std::nullopt;
      std::fputs("\n(/exit or Ctrl-D leaves)\n", stderr);
      show();
      continue;
    }
    if (ready <= 0) continue;
    char bytes[4096];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      ended_ = true;
    else
      buffer_.append(bytes, static_cast<size_t>(count));
  }
}

void Console::write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  flush_output();
}

void Console::notice(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fputs("\n", stderr);
}

}  // namespace mulciber::apps
