// GBNF, the grammar notation of llama.cpp.
#include <fmt/format.h>

#include <map>
#include <optional>

#include "checkpoints/json.h"
#include "text/grammar/reader.h"
#include "text/grammar/utf8_ranges.h"

namespace mulciber {
namespace {

const std::string kNotation = "GBNF grammar";

bool is_name(uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class GbnfReader {
 public:
  explicit GbnfReader(std::string_view text) : rules_(kNotation), at_(kNotation, text) {}

  Rules run() {
    skip(true);
    while (!at_.done()) {
      const std::string name = read_name();
      skip(false);
      if (!at_.take("::=")) at_.fail("lacks ::= behind the name of a rule");
      skip(true);
      const uint32_t rule = rule_of(name);
      if (rules_.rules()[rule].defined) at_.fail(fmt::format("defines '{}' twice", name));
      rules_.define(rule, alternatives(false));
      if (!at_.done() && !is_new_line(at_.peek())) at_.fail(unexpected());
      skip(true);
    }
    const auto root = numbers_.find("root");
    if (root == numbers_.end())
      refuse_grammar(kNotation, "has no rule 'root'", "name the rule of the whole text root");
    rules_.root = root->second;
    return std::move(rules_);
  }

 private:
  static bool is_new_line(uint32_t c) { return c == '\n' || c == '\r'; }
  std::string unexpected() const {
    return fmt::format("has an unexpected '{}'", printable(utf8(at_.peek())));
  }

  /// Skips blanks and comments; lines: also line ends.
  void skip(bool lines) {
    while (!at_.done()) {
      if (at_.peek() == '#') {
        while (!at_.done() && !is_new_line(at_.peek())) at_.next();
      } else if (at_.peek() == ' ' || at_.peek() == '\t' || (lines && is_new_line(at_.peek()))) {
        at_.next();
      } else {
        return;
      }
    }
  }

  std::string read_name() {
    std::string name;
    while (!at_.done() && is_name(at_.peek())) name += static_cast<char>(at_.next());
    if (name.empty()) at_.fail(at_.done() ? "ends where a name should stand" : unexpected());
    return name;
  }

  uint32_t rule_of(const std::string& name) {
    const auto [known, is_new] = numbers_.try_emplace(name, 0);
    if (is_new) known->second = rules_.add_rule(name);
    return known->second;
  }

  Part alternatives(bool nested) {
    std::vector<Part> parts = {sequence(nested)};
    while (true) {
      // An alternative may begin on a new line.
      const CharacterReader before = at_;
      skip(true);
      if (!at_.take("|")) {
        at_ = before;
        break;
      }
      skip(true);
      parts.push_back(sequence(nested));
    }
    return rules_.choice(std::move(parts));
  }

  Part sequence(bool nested) {
    std::vector<Part> parts;
    while (true) {
      skip(nested);
      std::optional<Part> part = symbol();
      if (!part) break;
      skip(nested);
      while (const std::optional<Repetition> times = at_.repetition(true)) {
        part = rules_.repeat(*part, times->least, times->most);
        skip(nested);
      }
      parts.push_back(*part);
    }
    return parts.empty() ? rules_.text("") : rules_.sequence(std::move(parts));
  }

  std::optional<Part> symbol() {
    if (at_.done()) return std::nullopt;
    if (at_.take("\"")) return literal();
    if (at_.take("[")) return rules_.one_of(character_class());
    if (at_.take(".")) return rules_.one_of(complement({}));
    if (at_.take("(")) {
      const CharacterReader::Nested nested(at_);
      skip(true);
      const Part inner = alternatives(true);
      skip(true);
      if (!at_.take(")")) at_.fail("lacks a )");
      return inner;
    }
    if (at_.peek() == '<' || at_.peek() == '!')
      at_.fail("names tokens (<...>), which is not supported", "write their text");
    if (!is_name(at_.peek())) return std::nullopt;
    return rules_.call(rule_of(read_name()));
  }

  Part literal() {
    std::string text;
    while (!at_.take("\"")) {
      if (at_.done() || is_new_line(at_.peek())) at_.fail("has a text without its closing \"");
      text += utf8(character());
    }
    return rules_.text(text);
  }

  uint32_t character() {
    if (!at_.take("\\")) return at_.next();
    const uint32_t c = at_.next();
    switch (c) {
      case 'x': return at_.hex(2);
      case 'u': return at_.hex(4);
      case 'U': return at_.hex(8);
      case 't': return '\t';
      case 'r': return '\r';
      case 'n': return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^': return c;
      default: at_.fail(fmt::format("has an unknown escape \\{}", printable(utf8(c))));
    }
  }

  CodeSet character_class() {
    CodeSet set;
    const bool not_these = at_.take("^");
    while (!at_.take("]")) {
      if (at_.done()) at_.fail("has a class without its closing ]");
      const uint32_t first = character();
      uint32_t last = first;
      if (!at_.done() && at_.peek() == '-' && !at_.follows("-]")) {
        at_.next();
        last = character();
      }
      if (last < first) at_.fail("has a range of characters that ends before it begins");
      set.push_back({first, last});
    }
    return not_these ? complement(set) : normalized(set);
  }

  Rules rules_;
  CharacterReader at_;
  std::map<std::string, uint32_t> numbers_;
};

}  // namespace

Rules read_gbnf(std::string_view text) { return GbnfReader(text).run(); }

}  // namespace mulciber
