#include "text/tokenizers/text.h"

#include <utf8proc.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

namespace mulciber {
namespace {

const utf8proc_uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

/// Length of the longest prefix of `bytes` that begins, but does not complete, a valid character;
/// at least 1.
std::size_t maximal_subpart(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = at(0);
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF   ? 2
                             : lead >= 0xE0 && lead <= 0xEF ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                            : 1;
  // The second byte's range excludes overlong forms, surrogates and values beyond U+10FFFF.
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  std::size_t n = 1;
  while (n < length && n < bytes.size() && at(n) >= (n == 1 ? low : 0x80) &&
         at(n) <= (n == 1 ? high : 0xBF))
    ++n;
  return n;
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  if (text.empty()) return {};
  if (static_cast<unsigned char>(text[0]) < 0x80) return {text[0], 1};
  utf8proc_int32_t value = -1;
  const auto length =
      utf8proc_iterate(bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()), &value);
  if (length <= 0) return {};
  return {value, static_cast<std::size_t>(length)};
}

void append_utf8(std::string& out, std::int32_t code_point) {
  utf8proc_uint8_t buffer[4];
  const auto length = utf8proc_encode_char(code_point, buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<std::size_t>(length));
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.length == 0) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

std::size_t count_code_points(std::string_view valid_text) {
  std::size_t count = 0;
  for (const char c : valid_text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

std::string replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    out.append(c.length ? text.substr(0, c.length) : kReplacementCharacter);
    text.remove_prefix(c.length ? c.length : 1);
  }
  return out;
}

std::string decode_lossy(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const CodePoint c = first_code_point(bytes);
    out.append(c.length ? bytes.substr(0, c.length) : kReplacementCharacter);
    bytes.remove_prefix(c.length ? c.length : maximal_subpart(bytes));
  }
  return out;
}

bool is_white_space(std::int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_bert_punctuation(std::int32_t c) {
  if (c < 0x80)
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  const auto category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_numeric(std::int32_t c) {
  const auto category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_word(std::int32_t c) {
  const auto category = utf8proc_category(c);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ND) ||
         category == UTF8PROC_CATEGORY_PC;
}

bool is_mark(std::int32_t c) {
  const auto category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(std::int32_t c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_MN; }

bool is_control(std::int32_t c) { return utf8proc_category(c) >= UTF8PROC_CATEGORY_CC; }

std::string lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.value == 0x130) {
      out += "i\xCC\x87";  // the one letter whose lower case is two code points
    } else {
      append_utf8(out, utf8proc_tolower(c.value));
    }
    text.remove_prefix(c.length);
  }
  return out;
}

std::string normalize(std::string_view text, NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::kNfc || form == NormalForm::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* result = nullptr;
  const auto length = utf8proc_map(bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()),
                                   &result, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  if (length < 0) throw std::bad_alloc();  // the only failure left for valid text
  return {reinterpret_cast<const char*>(result), static_cast<std::size_t>(length)};
}

std::vector<std::size_t> grapheme_lengths(std::string_view text) {
  std::vector<std::size_t> lengths;
  utf8proc_int32_t state = 0, previous = -1;
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (previous < 0 || utf8proc_grapheme_break_stateful(previous, c.value, &state))
      lengths.push_back(0);
    lengths.back() += c.length;
    previous = c.value;
    text.remove_prefix(c.length);
  }
  return lengths;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t begin = 0;;) {
    const std::size_t at = text.find(from, begin);
    out.append(text.substr(begin, at - begin));
    if (at == text.npos) return out;
    out.append(to);
    begin = at + from.size();
  }
}

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece[5] != '>') return -1;
  int value = 0;
  for (const char c : piece.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

std::string piece_of_byte(unsigned char byte) {
  char text[8];
  std::snprintf(text, sizeof text, "<0x%02X>", byte);
  return text;
}

}  // namespace mulciber
