#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>

#include "text/jinja/text.h"

namespace mulciber::jinja {
namespace {

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_name_start(c) || is_digit_char(c); }

/// Unifies line ends and removes the last one.
std::string with_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(with_newlines(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (!rest_.empty()) data();
    add(TokenType::kEnd, {});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string problem) const {
    throw SyntaxFault{line_, std::move(problem)};
  }
  void add(TokenType type, std::string text) { tokens_.push_back({type, std::move(text), line_}); }

  void skip(std::size_t count) {
    line_ += static_cast<int>(
        std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(count), '\n'));
    rest_.remove_prefix(count);
  }
  void skip_spaces() { skip(rest_.size() - trim_left(rest_).size()); }
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    skip(text.size());
    return true;
  }

  /// The part of `text` that is kept before a tag. A minus sign removes white space at its end.
  /// Otherwise (except before output, or with a plus) white space is removed if it is alone on the
  /// tag's line.
  std::string_view before_tag(std::string_view text, char sign, bool is_output) const {
    if (sign == '-') return trim_right(text);
    if (sign == '+' || is_output) return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t start = newline == text.npos ? 0 : newline + 1;
    const bool at_line_start =
        start > 0 || text.data() == source_.data() || text.data()[-1] == '\n';
    return at_line_start && trim_left(text.substr(start)).empty() ? text.substr(0, start) : text;
  }

  static char sign_at(std::string_view text, std::size_t at) {
    return at < text.size() && (text[at] == '-' || text[at] == '+') ? text[at] : '\0';
  }

  void add_data(std::string_view kept, std::size_t length) {
    if (!kept.empty()) add(TokenType::kData, std::string(kept));
    skip(length);
  }

  void data() {
    std::size_t at = 0;
    while (true) {
      at = rest_.find('{', at);
      if (at == rest_.npos || at + 1 == rest_.size()) return add_data(rest_, rest_.size());
      const char next = rest_[at + 1];
      if (next == '{' || next == '%' || next == '#') break;
      ++at;
    }
    const char kind = rest_[at + 1];
    const char sign = sign_at(rest_, at + 2);
    add_data(before_tag(rest_.substr(0, at), sign, kind == '{'), at);
    if (kind == '%' && raw_block()) return;
    skip(sign ? 3 : 2);
    if (kind == '#')
      comment();
    else if (kind == '{')
      tag(TokenType::kOutputBegin, TokenType::kOutputEnd);
    else
      tag(TokenType::kBlockBegin, TokenType::kBlockEnd);
  }

  void comment() {
    const std::size_t end = rest_.find("#}");
    if (end == rest_.npos) fail("a comment has no end");
    const char sign = end > 0 ? sign_at(rest_, end - 1) : '\0';
    skip(end + 2);
    after_block(sign);
  }

  /// Removes white space after the end of a block or comment.
  void after_block(char sign) {
    if (sign == '-')
      skip_spaces();
    else if (sign != '+')
      take("\n");
  }

  /// The length of `{% word %}` at the start of `text`, and its signs; 0 if it is not there.
  static std::size_t match_tag(std::string_view text, std::string_view word, char& first_sign,
                               char& last_sign) {
    if (!text.starts_with("{%")) return 0;
    std::string_view rest = text.substr(2);
    first_sign = sign_at(rest, 0);
    if (first_sign) rest.remove_prefix(1);
    rest = trim_left(rest);
    if (!rest.starts_with(word)) return 0;
    rest = trim_left(rest.substr(word.size()));
    last_sign = sign_at(rest, 0);
    if (last_sign) rest.remove_prefix(1);
    return rest.starts_with("%}") ? text.size() - rest.size() + 2 : 0;
  }

  bool raw_block() {
    char first = 0, last = 0;
    const std::size_t begin = match_tag(rest_, "raw", first, last);
    if (begin == 0 || last == '+') return false;
    skip(begin);
    if (last == '-') skip_spaces();
    for (std::size_t at = rest_.find("{%"); at != rest_.npos; at = rest_.find("{%", at + 1)) {
      const std::size_t end = match_tag(rest_.substr(at), "endraw", first, last);
      if (end == 0) continue;
      add_data(before_tag(rest_.substr(0, at), first, false), at + end);
      after_block(last);
      return true;
    }
    fail("a raw block has no end");
  }

  void tag(TokenType begin, TokenType end) {
    add(begin, {});
    const std::string_view close = end == TokenType::kBlockEnd ? "%}" : "}}";
    std::string open_brackets;
    while (true) {
      skip_spaces();
      if (rest_.empty()) fail("a tag has no end");
      if (open_brackets.empty()) {
        const char sign = sign_at(rest_, 0);
        // A plus sign has a meaning only at the end of a block.
        const bool is_sign = sign == '-' || (sign == '+' && end == TokenType::kBlockEnd);
        if (rest_.substr(is_sign ? 1 : 0).starts_with(close)) {
          skip(close.size() + (is_sign ? 1 : 0));
          add(end, {});
          if (end == TokenType::kBlockEnd)
            after_block(is_sign ? sign : '\0');
          else if (is_sign)
            skip_spaces();
          return;
        }
      }
      token(open_brackets);
    }
  }

  void token(std::string& open_brackets) {
    const char c = rest_[0];
    if (is_digit_char(c)) return number();
    if (is_name_start(c)) {
      const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_name_char);
      const auto length = static_cast<std::size_t>(end - rest_.begin());
      add(TokenType::kName, std::string(rest_.substr(0, length)));
      return skip(length);
    }
    if (c == '\'' || c == '"') return string(c);
    constexpr std::array<std::string_view, 26> kOperators = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view name : kOperators) {
      if (!rest_.starts_with(name)) continue;
      if (name == "(" || name == "[" || name == "{")
        open_brackets += name == "(" ? ')' : name == "[" ? ']' : '}';
      if (name == ")" || name == "]" || name == "}") {
        if (open_brackets.empty() || open_brackets.back() != name[0])
          fail("unexpected '" + std::string(name) + "'");
        open_brackets.pop_back();
      }
      add(TokenType::kOperator, std::string(name));
      return skip(name.size());
    }
    std::size_t at = 0;
    next_code(rest_, at);
    fail("unexpected character '" + std::string(rest_.substr(0, at)) + "'");
  }

  std::size_t digits(std::size_t at) const {
    while (at < rest_.size() &&
           (is_digit_char(rest_[at]) ||
            (rest_[at] == '_' && at + 1 < rest_.size() && is_digit_char(rest_[at + 1]))))
      ++at;
    return at;
  }

  void number() {
    const bool after_dot = rest_.data() > source_.data() && rest_.data()[-1] == '.';
    std::size_t end = digits(0);
    bool is_float = false;
    if (!after_dot) {
      const auto digit_at = [&](std::size_t at) {
        return at < rest_.size() && is_digit_char(rest_[at]);
      };
      if (end < rest_.size() && rest_[end] == '.' && digit_at(end + 1)) {
        end = digits(end + 1);
        is_float = true;
      }
      if (end < rest_.size() && (rest_[end] == 'e' || rest_[end] == 'E')) {
        const std::size_t exponent = end + 1 + (sign_at(rest_, end + 1) ? 1 : 0);
        if (digit_at(exponent)) {
          end = digits(exponent);
          is_float = true;
        }
      }
    }
    std::string text(rest_.substr(0, end));
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    if (!is_float && text.size() > 1 && text[0] == '0' && text.find_first_not_of('0') != text.npos)
      fail("a number begins with 0");
    add(is_float ? TokenType::kFloat : TokenType::kInteger, text);
    skip(end);
  }

  void string(char quote) {
    std::string text;
    std::size_t at = 1;
    while (true) {
      if (at >= rest_.size()) fail("a string has no end");
      const char c = rest_[at++];
      if (c == quote) break;
      if (c != '\\')
        text += c;
      else if (at >= rest_.size())
        fail("a string has no end");
      else
        escape(text, at);
    }
    add(TokenType::kString, std::move(text));
    skip(at);
  }

  /// Reads the rest of an escape after the backslash, like in a Python string.
  void escape(std::string& text, std::size_t& at) {
    const char c = rest_[at++];
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
    if (const std::size_t which = kLetters.find(c); which != kLetters.npos) {
      text += kMeanings[which];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      append_code(text, at, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    } else if (c >= '0' && c <= '7') {
      --at;
      std::size_t count = 1;
      while (count < 3 && at + count < rest_.size() && rest_[at + count] >= '0' &&
             rest_[at + count] <= '7')
        ++count;
      append_code(text, at, count, 8);
    } else if (c == 'N') {
      fail("characters by name are not supported");
    } else if (c != '\n') {  // a backslash before the end of a line joins lines
      text += '\\';
      text += c;
    }
  }

  void append_code(std::string& text, std::size_t& at, std::size_t count, int base) {
    std::uint32_t code = 0;
    for (std::size_t i = 0; i < count; ++i, ++at) {
      const char c = at < rest_.size() ? rest_[at] : '\0';
      const int value = is_digit_char(c)       ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : 16;
      if (value >= base) fail("an escape in a string has too few digits");
      code = code * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(value);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      fail("an escape in a string names no character");
    append_utf8(text, code);
  }

  const std::string source_;
  std::string_view rest_;  // a tail of source_
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  if (!is_valid_utf8(source)) throw SyntaxFault{1, "the template is not valid UTF-8"};
  return Lexer(source).run();
}

}  // namespace mulciber::jinja
