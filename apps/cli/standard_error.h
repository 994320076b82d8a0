// Messages of a command on standard error.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace mulciber::apps {

/// Prints to standard error. Where that cannot be written, on a full disk for example, only the
/// message is lost: the exit code still shows how the command ended, and a server goes on.
template <typename... Args>
void tell(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace mulciber::apps
