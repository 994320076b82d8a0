#include "text/jinja/text.h"

#include <utf8proc.h>

#include <cstdio>
#include <utility>

namespace mulciber::jinja {

void append_utf8(std::string& text, std::uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

namespace {

utf8proc_ssize_t iterate(std::string_view text, std::size_t at, utf8proc_int32_t& code) {
  return utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                          static_cast<utf8proc_ssize_t>(text.size() - at), &code);
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = -1;
    const auto size = iterate(text, at, code);
    if (size > 0)
      valid.append(text.substr(at, static_cast<std::size_t>(size)));
    else
      valid += "\xef\xbf\xbd";
    at += size > 0 ? static_cast<std::size_t>(size) : 1;
  }
  return valid;
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = -1;
    const auto size = iterate(text, at, code);
    if (size <= 0) return false;
    at += static_cast<std::size_t>(size);
  }
  return true;
}

std::uint32_t next_code(std::string_view text, std::size_t& at) {
  utf8proc_int32_t code = 0xfffd;
  const auto size = iterate(text, at, code);
  at += size > 0 ? static_cast<std::size_t>(size) : 1;
  return static_cast<std::uint32_t>(code);
}

std::size_t length_of(std::string_view text) {
  std::size_t length = 0;
  for (const char byte : text) length += (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
  return length;
}

std::size_t offset_of(std::string_view text, std::size_t index) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80 && index-- == 0) return at;
  return text.size();
}

bool is_space(std::uint32_t code) {
  return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
         code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

std::string_view strip(std::string_view text, const std::string* chars, bool left, bool right) {
  const auto goes = [&](std::uint32_t code) {
    if (!chars) return is_space(code);
    for (std::size_t at = 0; at < chars->size();)
      if (next_code(*chars, at) == code) return true;
    return false;
  };
  while (left && !text.empty()) {
    std::size_t at = 0;
    if (!goes(next_code(text, at))) break;
    text.remove_prefix(at);
  }
  while (right && !text.empty()) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
    std::size_t at = begin;
    if (!goes(next_code(text, at))) break;
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

std::string_view trim_left(std::string_view text) { return strip(text, nullptr, true, false); }
std::string_view trim_right(std::string_view text) { return strip(text, nullptr, false, true); }

bool is_upper(std::uint32_t code) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_LU;
}
bool is_lower(std::uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_LL ||
         code == 0xaa || code == 0xba;
}
bool is_cased(std::uint32_t code) {
  return is_upper(code) || is_lower(code) ||
         utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_LT;
}
bool is_letter(std::uint32_t code) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}
bool is_digit(std::uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_ND ||
         code == 0xb2 || code == 0xb3 || code == 0xb9;
}

namespace {

enum class Case { kUpper, kLower, kTitle };

void append_cased(std::string& text, std::uint32_t code, Case wanted) {
  constexpr std::uint32_t kSharpS = 0xdf;  // utf8proc gives the capital sharp s, Python two letters
  const auto c = static_cast<utf8proc_int32_t>(code);
  if (code == kSharpS && wanted != Case::kLower) {
    text += wanted == Case::kUpper ? "SS" : "Ss";
  } else {
    const auto mapped = wanted == Case::kUpper   ? utf8proc_toupper(c)
                        : wanted == Case::kLower ? utf8proc_tolower(c)
                                                 : utf8proc_totitle(c);
    append_utf8(text, static_cast<std::uint32_t>(mapped));
  }
}

template <typename Choose>
std::string map_case(std::string_view text, Choose&& choose) {
  std::string mapped;
  mapped.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t code = next_code(text, at);
    append_cased(mapped, code, choose(code));
  }
  return mapped;
}

}  // namespace

std::string to_upper(std::string_view text) {
  return map_case(text, [](std::uint32_t) { return Case::kUpper; });
}
std::string to_lower(std::string_view text) {
  return map_case(text, [](std::uint32_t) { return Case::kLower; });
}
std::string to_title(std::string_view text) {
  bool in_word = false;
  return map_case(text, [&](std::uint32_t code) {
    const bool first = !in_word;
    in_word = is_cased(code);
    return first ? Case::kTitle : Case::kLower;
  });
}
std::string to_capital(std::string_view text) {
  bool first = true;
  return map_case(text, [&](std::uint32_t) {
    return std::exchange(first, false) ? Case::kTitle : Case::kLower;
  });
}

std::string string_repr(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string repr(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const std::uint32_t code = next_code(text, at);
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
    const bool printable =
        code == ' ' || (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_SO);
    char escape[16];
    if (code == static_cast<unsigned char>(quote) || code == '\\')
      repr += '\\', repr += static_cast<char>(code);
    else if (code == '\n')
      repr += "\\n";
    else if (code == '\r')
      repr += "\\r";
    else if (code == '\t')
      repr += "\\t";
    else if (printable)
      repr += text.substr(begin, at - begin);
    else {
      std::snprintf(escape, sizeof escape,
                    code < 0x100     ? "\\x%02x"
                    : code < 0x10000 ? "\\u%04x"
                                     : "\\U%08x",
                    code);
      repr += escape;
    }
  }
  return repr += quote;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const std::uint32_t code = next_code(text, at);
    const bool is_end = (code >= '\n' && code <= '\r') || (code >= 0x1c && code <= 0x1e) ||
                        code == 0x85 || code == 0x2028 || code == 0x2029;
    if (!is_end) continue;
    if (code == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace mulciber::jinja
