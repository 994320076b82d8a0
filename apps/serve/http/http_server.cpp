#include "apps/serve/http/http_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "apps/serve/http/access.h"
#include "apps/serve/http/api_error.h"
#include "apps/serve/http/connection.h"
#include "apps/serve/http/framing.h"
#include "apps/serve/http/headers.h"
#include "apps/serve/http/ids.h"
#include "checkpoints/json.h"
#include "mulciber/error.h"

namespace mulciber::apps::serve {
namespace {

constexpr int kRequestsPerConnection = 10'000;

/// The state of a request on this thread, which the library's callbacks and the connection's loop
/// share.
struct Exchange {
  Connection& connection;
  HttpRecord record;
  std::optional<ApiError> refusal;  // found before the body is read
  std::string origin;               // to be allowed in the response
  bool close = false;               // the next bytes on the connection cannot be read
};
thread_local Exchange* t_exchange = nullptr;

/// The connection in the form of the library's stream. Its versions ask for different functions:
/// none here says `override`, and the compiler rejects a missing one.
// NOLINTBEGIN(modernize-use-override,cppcoreguidelines-explicit-virtual-functions)
class ConnectionStream final : public httplib::Stream {
 public:
  explicit ConnectionStream(Connection& connection) : connection_(connection) {}
  bool is_readable() const { return connection_.readable(); }
  bool is_writable() const { return connection_.writable(); }
  bool wait_readable() const { return connection_.readable(); }
  bool wait_writable() const { return connection_.writable(); }
  bool is_peer_alive() const { return !connection_.gone(); }
  time_t duration() const { return 0; }
  ssize_t read(char* to, size_t size) { return connection_.read(to, size); }
  ssize_t write(const char* from, size_t size) { return connection_.write(from, size); }
  void get_remote_ip_and_port(std::string& ip, int& port) const { connection_.remote(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const { connection_.local(ip, port); }
  socket_t socket() const { return connection_.socket(); }

 private:
  Connection& connection_;
};
// NOLINTEND(modernize-use-override,cppcoreguidelines-explicit-virtual-functions)

/// The error for a failure of the library's own.
ApiError unreadable(int status, Connection::Trouble trouble, bool in_body) {
  switch (trouble) {
    case Connection::Trouble::kTooLarge:
      if (in_body) return {413, "the body is larger than the server takes", "", "body_too_large"};
      return {431, "the headers are larger than the server takes", "", "headers_too_large"};
    case Connection::Trouble::kTooSlow:
      return {408, "the request did not arrive in time", "", "request_timeout"};
    default: break;
  }
  switch (status) {
    case 404: return {404, "there is nothing here"};
    case 413: return {413, "the body is larger than the server takes", "", "body_too_large"};
    case 414: return {414, "the address is too long"};
    case 500: return {500, "the request could not be answered"};
    default: return {status == 400 ? 400 : status, "the request is not HTTP that can be read"};
  }
}

}  // namespace

struct Route {
  std::string method, path;
  HttpHandler handler;
  HttpServer::Access access;
  bool matches(const std::string& asked) const {
    if (path.ends_with("/*")) return asked.starts_with(path.substr(0, path.size() - 1));
    return path == asked;
  }
};

struct HttpServer::Impl : httplib::Server {
  explicit Impl(const HttpSettings& settings) : settings(settings), access(settings) {}

  HttpSettings settings;
  AccessRules access;
  std::vector<Route> routes;
  std::function<void(const HttpRecord&)> on_record = [](const HttpRecord&) {};
  std::atomic<size_t> clients{0};
  std::atomic<bool> stopping{false};

  const Route* find(const std::string& method, const std::string& path) const {
    const std::string wanted = method == "HEAD" ? "GET" : method;
    for (const Route& route : routes)
      if (route.method == wanted && route.matches(path)) return &route;
    for (const Route& route : routes)
      if (route.matches(path))
        throw ApiError(405, fmt::format("{} takes {}, not {}", printable(path), route.method,
                                        printable(method)));
    throw ApiError(404, "there is nothing at this address; see docs/reference/http-api.md", "",
                   "unknown_address");
  }

  std::string methods_of(const std::string& path) const {
    std::string methods;
    for (const Route& route : routes)
      if (route.matches(path)) methods += (methods.empty() ? "" : ", ") + route.method;
    return methods;
  }

  /// Called by the library once the headers are read: what they alone show to be wrong is refused,
  /// and the body is not read.
  void begin(httplib::Request& request) {
    Exchange& exchange = *t_exchange;
    exchange.record.id = request_id(request.get_header_value("X-Request-Id"));
    exchange.record.method = request.method;
    exchange.record.path = request.path;
    exchange.record.remote = request.remote_addr;
    // Nothing here is worth compressing, and compression would hold back a stream; partial
    // responses are not supported.
    request.headers.erase("Accept-Encoding");
    request.headers.erase("Range");
    request.ranges.clear();
    const auto close = [&] {
      exchange.close = true;
      request.headers.erase("Connection");
      request.headers.emplace("Connection", "close");
    };
    try {
      if (check_framing(request)) close();
      if (request.has_header("Content-Encoding"))
        throw ApiError(415, "compressed bodies are not taken", "", "content_encoding");
      exchange.origin =
          access.check_origin(request.get_header_value("Origin"), request.get_header_value("Host"));
      if (request.method != "OPTIONS") {
        const Route* route = find(request.method, request.path);
        if (route->access == Access::kKey)
          access.check_key(request.get_header_value("Authorization"));
      }
      // The body's length alone does not suffice: a chunked body has no Content-Length.
      if (length_of(request) > settings.body_bytes)
        throw ApiError(413, fmt::format("the body is larger than {} bytes", settings.body_bytes),
                       "", "body_too_large");
    } catch (const std::exception& error) {
      exchange.refusal = to_api_error(error);
      close();
    }
    constexpr size_t kChunkHeads = 1u << 16;
    exchange.connection.expect(settings.body_bytes + kChunkHeads,
                               std::chrono::seconds(settings.body_seconds));
  }

  void add_common_headers(httplib::Response& response) const {
    const Exchange& exchange = *t_exchange;
    response.set_header("X-Request-Id", exchange.record.id);
    response.set_header("X-Content-Type-Options", "nosniff");
    if (exchange.origin.empty()) return;
    response.set_header("Access-Control-Allow-Origin", exchange.origin);
    response.set_header("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
    response.set_header("Vary", "Origin");
  }

  void put_error(httplib::Response& response, const ApiError& error) const {
    response.status = error.status();
    if (error.retry_after() > 0)
      response.set_header("Retry-After", std::to_string(error.retry_after()));
    if (error.status() == 401) response.set_header("WWW-Authenticate", "Bearer");
    if (error.status() == 405) response.set_header("Allow", methods_of(t_exchange->record.path));
    response.set_content(error.json() + "\n", "application/json");
    add_common_headers(response);
  }

  void answer(const httplib::Request& from, httplib::Response& response) const {
    if (from.method == "OPTIONS") {
      response.status = 204;
      add_common_headers(response);
      response.set_header("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
      response.set_header("Access-Control-Allow-Headers",
                          allowed_headers(from.get_header_value("Access-Control-Request-Headers")));
      response.set_header("Access-Control-Max-Age", "600");
      return;
    }
    try {
      Connection& connection = t_exchange->connection;
      HttpRequest request = {.method = from.method,
                             .path = from.path,
                             .body = from.body,
                             .id = t_exchange->record.id,
                             .form = {},
                             .gone = [&connection] { return connection.gone(); }};
      add_form(from, request.form);
      HttpResponse made = find(from.method, from.path)->handler(request);
      response.status = made.status;
      for (const auto& [name, value] : made.headers) response.set_header(name, value);
      add_common_headers(response);
      if (!made.stream) return response.set_content(made.body, made.type);
      response.set_header("Cache-Control", "no-store");
      response.set_chunked_content_provider(
          made.type, [stream = std::move(made.stream)](size_t, httplib::DataSink& sink) {
            bool taken = true;
            stream([&](std::string_view piece) {
              taken = taken && sink.write(piece.data(), piece.size());
              return taken;
            });
            if (taken) sink.done();
            return taken;
          });
    } catch (const std::exception& error) {
      put_error(response, to_api_error(error));
    }
  }

  /// Later versions of the library keep fields and files of a form apart.
  template <class Request>
  static void add_form(const Request& from, std::vector<FormPart>& parts) {
    if constexpr (requires { from.form.files; }) {
      for (const auto& [name, file] : from.form.files)
        parts.push_back({name, file.filename, file.content});
      for (const auto& [name, field] : from.form.fields) parts.push_back({name, "", field.content});
    } else {
      for (const auto& [name, file] : from.files)
        parts.push_back({name, file.filename, file.content});
    }
  }

  void serve(Connection& connection, int most_requests) {
    ConnectionStream stream(connection);
    const auto setup = [this](httplib::Request& request) { begin(request); };
    for (int left = most_requests; left > 0; --left) {
      if (!connection.wait_for_request(std::chrono::seconds(settings.idle_seconds))) return;
      connection.expect(settings.header_bytes, std::chrono::seconds(settings.header_seconds));
      Exchange exchange = {.connection = connection, .record = {}, .refusal = {}, .origin = {}};
      const auto begun = Connection::Clock::now();
      t_exchange = &exchange;
      bool closed = false;
      const bool answered = process(*this, stream, left == 1 || stopping, closed, setup);
      t_exchange = nullptr;
      exchange.record.seconds =
          std::chrono::duration<double>(Connection::Clock::now() - begun).count();
      if (connection.wrote()) on_record(exchange.record);
      if (!answered || closed || exchange.close) return connection.finish();
    }
  }

  /// Calls the library's function for one request, in the form of its version.
  template <class Self>
  static bool process(Self& self, ConnectionStream& stream, bool last, bool& closed,
                      const std::function<void(httplib::Request&)>& setup) {
    if constexpr (requires { self.process_request(stream, last, closed, setup); }) {
      return self.process_request(stream, last, closed, setup);
    } else {
      std::string remote, local;
      int remote_port = 0, local_port = 0;
      stream.get_remote_ip_and_port(remote, remote_port);
      stream.get_local_ip_and_port(local, local_port);
      return self.process_request(stream, remote, remote_port, local, local_port, last, closed,
                                  setup);
    }
  }

  /// Replaces the library's function, which sets no bounds on a whole request.
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket, std::chrono::seconds(settings.write_seconds), stopping);
    if (enter()) {
      serve(connection, kRequestsPerConnection);
      --clients;
    } else {
      turn_away(connection);
    }
    return true;
  }

  /// Counts a client, if the limit allows one more.
  bool enter() {
    size_t inside = clients;
    while (inside < settings.clients)
      if (clients.compare_exchange_weak(inside, inside + 1)) return true;
    return false;
  }

  /// Answers a client of a full server: monitoring requests are served, others get 503. Waits only
  /// briefly for the request, because the next client waits.
  void turn_away(Connection& connection) {
    constexpr const char* kWatching[] = {"GET /health", "HEAD /health", "GET /metrics",
                                         "HEAD /metrics"};
    const bool asks = connection.wait_for_request(std::chrono::milliseconds(100));
    const bool watches = std::ranges::any_of(kWatching, [&](const std::string& target) {
      return connection.begins_with(target + " ") || connection.begins_with(target + "?");
    });
    if (watches) return serve(connection, 1);
    const ApiError full(503, "too many clients are connected", "", "too_many_clients");
    const std::string body = full.json() + "\n";
    const std::string text = fmt::format(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
        "Connection: close\r\nContent-Length: {}\r\n\r\n{}",
        body.size(), body);
    connection.write(text.data(), text.size());
    HttpRecord record = {
        .id = new_id("req"), .remote = {}, .method = {}, .path = {}, .status = 503};
    int port = 0;
    connection.remote(record.remote, port);
    on_record(record);
    if (asks) connection.finish();
  }
};

HttpServer::HttpServer(const HttpSettings& settings) : impl_(std::make_unique<Impl>(settings)) {
  Impl& server = *impl_;
  // A thread for each client, and some that turn further ones away.
  constexpr size_t kMore = 8;
  server.new_task_queue = [threads = settings.clients + kMore] {
    return new httplib::ThreadPool(threads);
  };
  // By default the library lets two servers share a port, each of which gets some of the requests.
  server.set_socket_options([](socket_t socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  });
  server.set_payload_max_length(settings.body_bytes);
  server.set_keep_alive_max_count(kRequestsPerConnection);
  server.set_keep_alive_timeout(settings.idle_seconds);
  server.set_pre_routing_handler([&server](const httplib::Request&, httplib::Response& response) {
    if (!t_exchange->refusal) return httplib::Server::HandlerResponse::Unhandled;
    server.put_error(response, *t_exchange->refusal);
    return httplib::Server::HandlerResponse::Handled;
  });
  // The library's own refusals have no body. Behind one, the next bytes may be the rest of the
  // request.
  server.set_error_handler(httplib::Server::HandlerWithResponse(
      [&server](const httplib::Request&, httplib::Response& response) {
        if (!response.body.empty()) return httplib::Server::HandlerResponse::Unhandled;
        Exchange& exchange = *t_exchange;
        const bool in_body = !exchange.record.id.empty();
        if (!in_body) exchange.record.id = new_id("req");
        exchange.close = true;
        response.set_header("Connection", "close");
        server.put_error(response,
                         unreadable(response.status, exchange.connection.trouble(), in_body));
        return httplib::Server::HandlerResponse::Handled;
      }));
  server.set_logger([](const httplib::Request&, const httplib::Response& response) {
    t_exchange->record.status = response.status;
  });
  const auto all = [&server](const httplib::Request& request, httplib::Response& response) {
    server.answer(request, response);
  };
  const std::string any = R"((?:.|\n)*)";
  server.Get(any, all).Post(any, all).Delete(any, all).Options(any, all);
}

HttpServer::~HttpServer() = default;

void HttpServer::route(const std::string& method, const std::string& path, HttpHandler handler,
                       Access access) {
  impl_->routes.push_back({method, path, std::move(handler), access});
}

void HttpServer::on_record(std::function<void(const HttpRecord&)> record) {
  impl_->on_record = std::move(record);
}

std::string HttpServer::known_path(const std::string& path) const {
  for (const Route& route : impl_->routes)
    if (route.matches(path)) return route.path;
  return "other";
}

int HttpServer::bind() {
  const HttpSettings& settings = impl_->settings;
  const int port = settings.port == 0
                       ? impl_->bind_to_any_port(settings.host)
                       : (impl_->bind_to_port(settings.host, settings.port) ? settings.port : -1);
  if (port < 0)
    throw SettingError("port",
                       fmt::format("{} of {} cannot be listened on", settings.port, settings.host),
                       "another program may have it; choose another --port or --host");
  return port;
}

void HttpServer::run() { impl_->listen_after_bind(); }

void HttpServer::stop() {
  impl_->stopping = true;
  impl_->stop();
}

}  // namespace mulciber::apps::serve
