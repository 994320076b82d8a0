// Tables of filters and methods, and their common functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/function.h"

namespace mulciber::jinja {

struct NamedMethod {
  std::string_view name;
  Method method;
};

const std::vector<NamedMethod>& text_filters();
const std::vector<NamedMethod>& list_filters();
const std::vector<NamedMethod>& text_methods();
/// nullptr where there is no such name.
Method find_in(const std::vector<NamedMethod>& table, std::string_view name);

/// str.replace(); most: replacements, or below 0 for all.
Value replaced(Interpreter& interpreter, const std::string& text, const std::string& from,
               const std::string& to, std::int64_t most);
/// `width` copies of `fill`; nothing for a width below 1.
std::string padding(Interpreter& interpreter, std::int64_t width, std::string_view fill = " ");
Value centered(Interpreter& interpreter, const std::string& text, std::int64_t width,
               const std::string& fill);
/// Parses a number like Python's float(); no value for what float() refuses.
std::optional<double> parse_float(std::string_view text);

}  // namespace mulciber::jinja
