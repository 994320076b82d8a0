// Names of requests, answers and calls of tools.
#pragma once

#include <string>

namespace mulciber::apps::serve {

/// "PREFIX_" and 128 random bits, which nobody guesses.
std::string new_id(const char* prefix);

}  // namespace mulciber::apps::serve
