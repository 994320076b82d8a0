// Response headers that depend on request headers.
#pragma once

#include <string>

namespace mulciber::apps::serve {

/// X-Request-Id: the client's own id, where it fits into a header and a line of a log.
std::string request_id(const std::string& given);

/// Access-Control-Allow-Headers of a preflight: the headers that the page names, whatever they are,
/// because clients send some of their own and none changes an answer here. Where the page names
/// none, or no valid list of headers, these are the headers that the server reads.
std::string allowed_headers(const std::string& named);

}  // namespace mulciber::apps::serve
