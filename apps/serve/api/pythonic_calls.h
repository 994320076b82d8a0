// Reads tool calls in Python's syntax: [f(x=1, y="a"), g()].
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mulciber::apps::serve {

/// Names and arguments in JSON. No value where the text is not a list of calls whose arguments are
/// all named and are literals: texts, numbers, True, False, None, lists and dictionaries.
std::optional<std::vector<std::pair<std::string, std::string>>> read_pythonic_calls(
    std::string_view text);

}  // namespace mulciber::apps::serve
