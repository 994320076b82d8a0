#include "apps/serve/http/log.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "apps/cli/standard_error.h"
#include "checkpoints/json.h"

namespace mulciber::apps::serve {
namespace {

std::string now_text() {
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto parts = now.time_since_epoch().count();
  const auto seconds = static_cast<time_t>(parts / 1000);
  std::tm calendar = {};
  gmtime_r(&seconds, &calendar);
  char text[32] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &calendar);
  return fmt::format("{}.{:03}Z", text, parts % 1000);
}

}  // namespace

void RequestLog::line(const std::string& text) {
  const std::lock_guard lock(mutex_);
  tell("{}\n", text);
}

void RequestLog::request(const HttpRecord& record) {
  if (json_)
    return line(json_line({{"time", now_text()},
                           {"id", record.id},
                           {"client", record.remote},
                           {"method", record.method},
                           {"path", record.path},
                           {"status", record.status},
                           {"seconds", record.seconds}}));
  line(fmt::format("{} {} {} {} {} {} {:.3f} s", now_text(), record.id, record.remote,
                   printable(record.method), printable(record.path), record.status,
                   record.seconds));
}

void RequestLog::event(const std::string& words) {
  if (json_) return line(json_line({{"time", now_text()}, {"event", words}}));
  line(fmt::format("{} {}", now_text(), words));
}

}  // namespace mulciber::apps::serve
