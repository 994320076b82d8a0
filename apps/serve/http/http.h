// Requests and responses as the rest of the server sees them, independent of the HTTP library.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulciber::apps::serve {

/// A file of a form (multipart/form-data), or a field of it, which has no file name.
struct FormPart {
  std::string name, file_name, content;
};

struct HttpRequest {
  std::string method, path, body;
  std::string id;  // X-Request-Id: the client's, or generated
  std::vector<FormPart> form;
  /// Whether the client has closed its end; a system call, which takes a microsecond.
  std::function<bool()> gone;
};

/// Sends a piece of a body at once; returns false when the client does not take it any more.
using BodyWriter = std::function<bool(std::string_view piece)>;

struct HttpResponse {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  /// Replaces body: called once the headers are sent; the response ends when it returns.
  std::function<void(const BodyWriter&)> stream = {};
};

/// Answers a request. Exceptions become error responses (to_api_error).
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

}  // namespace mulciber::apps::serve
