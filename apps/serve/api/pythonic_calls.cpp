#include "apps/serve/api/pythonic_calls.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"
#include "mulciber/error.h"
#include "text/tokenizers/text.h"

namespace mulciber::apps::serve {
namespace {

struct NotPython {};

class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : text_(text) {}

  std::vector<std::pair<std::string, std::string>> calls() {
    std::vector<std::pair<std::string, std::string>> made;
    expect('[');
    do {
      const std::string function = name();
      expect('(');
      Json arguments = Json::object();
      while (!take(')')) {
        const std::string argument = name();
        expect('=');
        arguments[argument] = value();
        if (!take(',') && !ahead(')')) throw NotPython{};
      }
      made.emplace_back(function, json_line(arguments));
    } while (take(','));
    expect(']');
    blanks();
    if (at_ != text_.size()) throw NotPython{};
    return made;
  }

 private:
  static constexpr size_t kMostNesting = 32;

  void blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool ahead(char wanted) {
    blanks();
    return at_ < text_.size() && text_[at_] == wanted;
  }
  bool take(char wanted) {
    const bool there = ahead(wanted);
    if (there) ++at_;
    return there;
  }
  void expect(char wanted) {
    if (!take(wanted)) throw NotPython{};
  }
  std::string_view run(std::string_view of) {
    const size_t begin = at_;
    at_ = std::min(text_.find_first_not_of(of, at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }
  std::string name() {
    blanks();
    const std::string_view found =
        run("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    if (found.empty()) throw NotPython{};
    return std::string(found);
  }

  Json value() {
    if (++depth_ > kMostNesting) throw NotPython{};
    Json made;
    if (ahead('"') || ahead('\'')) {
      made = string();
    } else if (take('[')) {
      made = Json::array();
      while (!take(']')) {
        made.push_back(value());
        if (!take(',') && !ahead(']')) throw NotPython{};
      }
    } else if (take('{')) {
      made = Json::object();
      while (!take('}')) {
        blanks();
        const std::string key = string();
        expect(':');
        made[key] = value();
        if (!take(',') && !ahead('}')) throw NotPython{};
      }
    } else {
      made = word(name_or_number());
    }
    --depth_;
    return made;
  }
  std::string_view name_or_number() { return run("aeflnorstuEFNT0123456789+-."); }
  static Json word(std::string_view word) {
    if (word == "True" || word == "true") return true;
    if (word == "False" || word == "false") return false;
    if (word == "None" || word == "null") return nullptr;
    Json number = parse_json(word, "a number");  // throws ModelError
    if (!number.is_number()) throw NotPython{};
    return number;
  }
  std::string string() {
    if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) throw NotPython{};
    const char end = text_[at_++];
    std::string made;
    for (; at_ < text_.size() && text_[at_] != end; ++at_) {
      if (text_[at_] != '\\' || at_ + 1 == text_.size()) {
        made += text_[at_];
        continue;
      }
      made += escaped();
    }
    expect(end);
    return made;
  }
  /// Reads an escape from the character behind the backslash; stays at its last character.
  std::string escaped() {
    const char c = text_[++at_];
    if (c == 'u' || c == 'U') return character(c == 'u' ? 4 : 8);
    if (c == 'x') return character(2);
    constexpr std::string_view kEscapes = "nrtbf", kMeant = "\n\r\t\b\f";
    const size_t found = kEscapes.find(c);
    return {found == kEscapes.npos ? c : kMeant[found]};
  }
  /// Reads a character of so many hexadecimal digits; two of \u may be the surrogates of one in
  /// UTF-16.
  std::string character(size_t digits) {
    uint32_t code = hex(digits);
    const bool halves = digits == 4 && code >= 0xd800 && code < 0xdc00;
    if (halves && text_.substr(at_ + 1).starts_with("\\u")) {
      at_ += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + ((hex(4) - 0xdc00) & 0x3ff);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) throw NotPython{};
    std::string made;
    append_utf8(made, static_cast<int32_t>(code));
    return made;
  }
  uint32_t hex(size_t digits) {
    const std::string_view written = text_.substr(at_ + 1, digits);
    uint32_t code = 0;
    const auto [end, error] =
        std::from_chars(written.data(), written.data() + written.size(), code, 16);
    if (written.size() != digits || end != written.data() + digits) throw NotPython{};
    at_ += digits;
    return code;
  }

  std::string_view text_;
  size_t at_ = 0, depth_ = 0;
};

}  // namespace

std::optional<std::vector<std::pair<std::string, std::string>>> read_pythonic_calls(
    std::string_view text) {
  try {
    return PythonReader(text).calls();
  } catch (const NotPython&) {
  } catch (const ModelError&) {
  }
  return std::nullopt;
}

}  // namespace mulciber::apps::serve
