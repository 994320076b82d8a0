// Tables of filters and methods, and what they share.
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
/// `fill` as often as that; nothing for a width below 1.
std::string padding(Interpreter& interpreter, std::int64_t width, std::string_view fill = " ");
Value centered(Interpreter& interpreter, const std::string& text, std::int64_t width,
               const std::string& fill);
/// As Python's float() reads; no value for what it refuses.
std::optional<double> parse_float(std::string_view text);

}  // namespace mulciber::jinja
