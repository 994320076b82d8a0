// Headers of answers that follow from those of requests.
#pragma once

#include <string>

namespace mulciber::apps::serve {

/// X-Request-Id: the client's own id, where it can stand in a header and a line of a log.
std::string request_id(const std::string& given);

/// Access-Control-Allow-Headers of a preflight: the headers that the page names, whatever they are,
/// for clients have some of their own and none changes an answer here; those that are read where it
/// names none, or what can be no list of headers.
std::string allowed_headers(const std::string& named);

}  // namespace mulciber::apps::serve
