#include "apps/attention/text.h"

#include <fmt/format.h>
#include <utf8proc.h>

namespace mulciber::apps {
namespace {

constexpr std::string_view kWordMark = "\xE2\x96\x81";  // U+2581 lower one eighth block
constexpr std::string_view kOpenBox = "\xE2\x90\xA3";   // U+2423, a visible space
constexpr std::string_view kLineEnd = "\xE2\x86\xB5";   // U+21B5, a visible line feed
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";  // U+2026
constexpr utf8proc_int32_t kReplacement = 0xFFFD;

// Calls `visit(code point)` for each code point, U+FFFD for each byte that fits nowhere.
template <typename Visit>
void for_each_code_point(std::string_view text, const Visit& visit) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  std::size_t at = 0;
  while (at < text.size()) {
    utf8proc_int32_t code = 0;
    const auto length =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (length <= 0) code = kReplacement;
    visit(code);
    at += length > 0 ? static_cast<std::size_t>(length) : 1;
  }
}

void append(std::string& out, utf8proc_int32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(code, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

// The Char production of XML 1.0, less the C1 controls and all noncharacters, which it discourages.
bool is_xml_character(utf8proc_int32_t code) {
  if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
  if (code >= 0x7F && code <= 0x9F) return false;
  if (code >= 0xFDD0 && code <= 0xFDEF) return false;
  return (code & 0xFFFE) != 0xFFFE;
}

bool is_space(utf8proc_int32_t code) {
  return code == ' ' || code == '\t' || code == '\n' || code == '\r' || code == 0xA0;
}

}  // namespace

std::string xml_characters(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(text, [&](utf8proc_int32_t code) {
    if (is_xml_character(code)) append(out, code);
  });
  return out;
}

std::string xml_escape(std::string_view text) {
  std::string out;
  for (const char c : xml_characters(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

bool begins_word(std::string_view piece) { return piece.substr(0, kWordMark.size()) == kWordMark; }

bool continues_word(std::string_view piece) {
  if (begins_word(piece)) return false;
  if (piece.size() > 2 && piece.front() == '<' && piece.back() == '>') return false;
  bool letters = false;
  for_each_code_point(piece, [&](utf8proc_int32_t code) {
    const auto category = utf8proc_category(code);
    const bool mark = category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_SO;
    letters = letters || !(mark || is_space(code));
  });
  return letters;
}

int display_columns(std::string_view text) {
  int columns = 0;
  for_each_code_point(text, [&](utf8proc_int32_t code) { columns += utf8proc_charwidth(code); });
  return columns;
}

std::string piece_label(std::string_view piece, int max_columns) {
  std::string clean = xml_characters(piece);
  std::string_view rest = clean;
  if (begins_word(rest) && rest.size() > kWordMark.size()) rest.remove_prefix(kWordMark.size());

  std::string label;
  int columns = 0;
  bool cut = false;
  for_each_code_point(rest, [&](utf8proc_int32_t code) {
    if (cut) return;
    const bool space = is_space(code) || code == 0x2581;
    columns += space ? 1 : utf8proc_charwidth(code);
    if (columns > max_columns) {
      cut = true;
    } else if (space) {
      label += code == '\n' ? kLineEnd : kOpenBox;
    } else {
      append(label, code);
    }
  });
  if (cut) {
    while (display_columns(label) > max_columns - 1) {
      std::size_t last = label.size() - 1;
      while (last > 0 && (static_cast<unsigned char>(label[last]) & 0xC0) == 0x80) --last;
      label.resize(last);
    }
    label += kEllipsis;
  }
  // A piece without visible characters is named by its code point.
  if (display_columns(label) == 0) {
    utf8proc_int32_t first = -1;
    for_each_code_point(clean, [&](utf8proc_int32_t code) { first = first < 0 ? code : first; });
    label = first < 0 ? std::string(kOpenBox) : fmt::format("U+{:04X}", first);
  }
  return label;
}

}  // namespace mulciber::apps
