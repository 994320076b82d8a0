// Message framing: where a request's body ends.
#pragma once

#include <httplib.h>

namespace mulciber::apps::serve {

/// Checks that the end of a body is unambiguous: a proxy in front that saw another end would take
/// what follows for another client's request. Returns whether the connection ends behind this
/// request. Throws ApiError (400).
bool check_framing(httplib::Request& request);

/// The value of Content-Length; 0 where it is missing.
unsigned long long length_of(const httplib::Request& request);

}  // namespace mulciber::apps::serve
