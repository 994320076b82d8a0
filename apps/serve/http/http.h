// Requests and answers as the rest of the server sees them, whatever library speaks HTTP.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulciber::apps::serve {

/// A file of a form (multipart/form-data), or one of its fields: then without a file name.
struct FormPart {
  std::string name, file_name, content;
};

struct HttpRequest {
  std::string method, path, body;
  std::string id;  // X-Request-Id: the client's, or one of the server's own
  std::vector<FormPart> form;
  /// Whether the client has closed its end; asks the system, which takes a microsecond.
  std::function<bool()> gone;
};

/// Sends a piece of a body at once; false: the client does not take it any more.
using BodyWriter = std::function<bool(std::string_view piece)>;

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  /// In place of body: called once the headers are sent, and the answer ends when it returns.
  std::function<void(const BodyWriter&)> stream = {};
};

/// What it throws becomes an answer (to_api_error).
using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

}  // namespace mulciber::apps::serve
