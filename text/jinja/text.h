// Python's strings over UTF-8: lengths and indices count code points. All text is valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mulciber::jinja {

/// Invalid bytes become U+FFFD.
std::string valid_utf8(std::string_view text);
bool is_valid_utf8(std::string_view text);
void append_utf8(std::string& text, std::uint32_t code);
/// The code point at byte `at`, which is moved past it.
std::uint32_t next_code(std::string_view text, std::size_t& at);
std::size_t length_of(std::string_view text);
/// The byte at which code point `index` begins; the size of the text for any index past the end.
std::size_t offset_of(std::string_view text, std::size_t index);

bool is_space(std::uint32_t code);
std::string_view trim_left(std::string_view text);
std::string_view trim_right(std::string_view text);
/// Python's strip, lstrip and rstrip; chars: code points to remove, white space where it is null.
std::string_view strip(std::string_view text, const std::string* chars, bool left, bool right);

/// Simple case mappings of Unicode, and SS for sharp s; Python's other mappings to several letters
/// are missing.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// Implements str.title(): every run of letters is a word.
std::string to_title(std::string_view text);
std::string to_capital(std::string_view text);
bool is_cased(std::uint32_t code);
bool is_upper(std::uint32_t code);
bool is_lower(std::uint32_t code);
bool is_letter(std::uint32_t code);
bool is_digit(std::uint32_t code);

/// repr() of a string, with Python's choice of quotes and escapes.
std::string string_repr(std::string_view text);
/// Splits lines like Python: also at \v, \f, \x1c to \x1e, \x85, U+2028 and U+2029.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

}  // namespace mulciber::jinja
