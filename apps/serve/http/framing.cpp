#include "apps/serve/http/framing.h"

#include <strings.h>

#include <cstdlib>
#include <string>

#include "apps/serve/http/api_error.h"

namespace mulciber::apps::serve {

bool check_framing(httplib::Request& request) {
  const size_t lengths = request.get_header_value_count("Content-Length"),
               encodings = request.get_header_value_count("Transfer-Encoding");
  if (lengths + encodings > 1)
    throw ApiError(400, "the length of the body is said more than once", "", "ambiguous_length");
  // Numbers that parsers read differently ("+5", "5, 5", "0x5") are rejected.
  const std::string length = request.get_header_value("Content-Length");
  constexpr size_t kMostDigits = 18;
  if (lengths > 0 && (length.empty() || length.size() > kMostDigits ||
                      length.find_first_not_of("0123456789") != std::string::npos))
    throw ApiError(400, "Content-Length is no number of bytes", "", "content_length");
  if (request.version == "HTTP/1.1" && request.get_header_value_count("Host") != 1)
    throw ApiError(400, "a request says its Host once", "", "host");
  if (encodings > 0 &&
      strcasecmp(request.get_header_value("Transfer-Encoding").c_str(), "chunked") != 0)
    throw ApiError(400, "of transfer encodings chunked alone is taken", "", "transfer_encoding");
  // The library reads bodies of POST alone, and one without a length until the client closes.
  if (request.method != "POST") return encodings > 0 || length_of(request) != 0;
  if (lengths + encodings == 0) request.headers.emplace("Content-Length", "0");
  // curl sends this type by default; the library takes only short forms.
  if (request.get_header_value("Content-Type").starts_with("application/x-www-form-urlencoded"))
    request.headers.erase("Content-Type");
  return false;
}

unsigned long long length_of(const httplib::Request& request) {
  return std::strtoull(request.get_header_value("Content-Length").c_str(), nullptr, 10);
}

}  // namespace mulciber::apps::serve
