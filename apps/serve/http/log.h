// Logs a line for each request on standard error.
#pragma once

#include <mutex>
#include <string>

#include "apps/serve/http/http_server.h"

namespace mulciber::apps::serve {

/// Thread-safe.
class RequestLog {
 public:
  explicit RequestLog(bool json) : json_(json) {}
  void request(const HttpRecord& record);
  /// Logs an event of the server.
  void event(const std::string& words);

 private:
  void line(const std::string& text);
  bool json_;
  std::mutex mutex_;
};

}  // namespace mulciber::apps::serve
