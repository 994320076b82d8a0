// Ids of requests, answers and tool calls.
#pragma once

#include <string>

namespace mulciber::apps::serve {

/// "PREFIX_" and 128 random bits, so that ids cannot be guessed.
std::string new_id(const char* prefix);

}  // namespace mulciber::apps::serve
