// Where a request's body ends.
#pragma once

#include <httplib.h>

namespace mulciber::apps::serve {

/// Where a body ends, without a doubt: a proxy in front that saw another end would take what
/// follows for another client's request. Gives whether the connection ends behind this one.
/// Throws ApiError (400).
bool check_framing(httplib::Request& request);

/// What Content-Length says; 0 where it is missing.
unsigned long long length_of(const httplib::Request& request);

}  // namespace mulciber::apps::serve
