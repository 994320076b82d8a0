// The server's outer half: connections, limits, keys, origins and routes. Handlers make the
// responses.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/serve/http/http.h"

namespace mulciber::apps::serve {

struct HttpSettings {
  std::string host = "127.0.0.1";
  int port = 8080;               // 0: a free one
  size_t clients = 128;          // connections at once; further ones get 503
  size_t body_bytes = 8u << 20;  // most bytes of a request's body
  size_t header_bytes = 1u << 16;
  int header_seconds = 10;        // for a request's headers to arrive
  int body_seconds = 60;          // for its body
  int idle_seconds = 30;          // a connection without requests is closed
  int write_seconds = 30;         // a client that takes nothing for so long is gone
  std::vector<std::string> keys;  // empty: no key is needed
  /// Origins of web pages that may send requests, besides the server's own; "*": all.
  std::vector<std::string> origins;
};

/// The outcome of a request, for logs and metrics.
struct HttpRecord {
  std::string id, remote, method, path;
  int status = 0;
  double seconds = 0;
};

class HttpServer {
 public:
  explicit HttpServer(const HttpSettings& settings);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  enum class Access { kKey, kOpen };  // kOpen: also without a key
  /// Adds a route, before run(). A path that ends in "/*" matches whatever follows.
  void route(const std::string& method, const std::string& path, HttpHandler handler,
             Access access = Access::kKey);
  /// record: called for every request once it was answered, on several threads at once.
  void on_record(std::function<void(const HttpRecord&)> record);

  /// The route of a path, for counting; "other" where there is none.
  std::string known_path(const std::string& path) const;

  /// Returns the port on which the server listens. Throws SettingError where it is taken or not
  /// allowed.
  int bind();
  /// Serves until stop(), and returns when every connection has ended.
  void run();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber::apps::serve
