// Regular expressions, as far as they are regular: the parts of ECMAScript's syntax that JSON
// schemas use.
#include <fmt/format.h>

#include <optional>

#include "checkpoints/json.h"
#include "text/grammar/reader.h"
#include "text/grammar/utf8_ranges.h"

namespace mulciber {
namespace {

const CodeSet kDigits = {{'0', '9'}};
const CodeSet kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
// White space of ECMAScript. Where dialects differ, \s means the characters that all of them
// include.
const CodeSet kWhiteSpace = {{'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
                             {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                             {0x3000, 0x3000}, {0xfeff, 0xfeff}, {0x85, 0x85},     {0x1c, 0x1f}};
const CodeSet kPlainSpace = {{'\t', '\r'}, {' ', ' '}};
const CodeSet kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

class RegexReader {
 public:
  RegexReader(Rules& rules, std::string_view pattern, const CharacterWriter& character,
              bool searches)
      : rules_(rules),
        at_("regular expression", pattern),
        character_(character),
        searches_(searches) {}

  Part run() {
    std::vector<Part> parts;
    do {
      const bool begins = at_.take("^");
      Part part = sequence();
      const bool ends = at_.take("$");
      if (searches_)
        part = rules_.sequence(
            {begins ? rules_.text("") : anything(), part, ends ? rules_.text("") : anything()});
      parts.push_back(part);
      if (!at_.done() && at_.peek() == ')') at_.fail("has a ) without its (");
      if (!at_.done() && at_.peek() != '|')
        at_.fail("has something behind $", "let ^ and $ stand at the ends alone");
    } while (at_.take("|"));
    return rules_.choice(std::move(parts));
  }

 private:
  Part one_of(const CodeSet& set) { return character_(rules_, set); }
  Part anything() { return rules_.repeat(one_of(complement({})), 0, kUnbounded); }

  Part alternatives() {
    std::vector<Part> parts;
    do parts.push_back(sequence());
    while (at_.take("|"));
    return rules_.choice(std::move(parts));
  }

  Part sequence() {
    std::vector<Part> parts;
    while (!at_.done() && at_.peek() != '|' && at_.peek() != ')' && at_.peek() != '$') {
      Part part = atom();
      if (const std::optional<Repetition> times = at_.repetition(false)) {
        part = rules_.repeat(part, times->least, times->most);
        // Laziness makes no difference: all possible matches are allowed.
        at_.take("?");
        if (at_.follows("+")) at_.fail("has a possessive repetition, which is not supported");
        if (at_.repetition(false)) at_.fail("repeats a repetition", "put it in parentheses");
      }
      parts.push_back(part);
    }
    return parts.empty() ? rules_.text("") : rules_.sequence(std::move(parts));
  }

  Part atom() {
    if (at_.take("(")) return group();
    if (at_.take("[")) return one_of(character_class());
    if (at_.take(".")) return one_of(complement(kLineEnds));
    if (at_.take("\\")) return one_of(escape(false));
    if (at_.follows("^"))
      at_.fail("has a ^ inside", "let ^ and $ stand at the ends of the whole alone");
    if (at_.follows("*") || at_.follows("+") || at_.follows("?"))
      at_.fail("repeats nothing", "put something before *, + and ?, or a \\");
    const uint32_t c = at_.next();
    return one_of({{c, c}});
  }

  Part group() {
    const CharacterReader::Nested nested(at_);
    if (at_.take("?")) {
      for (const char* look : {"=", "!", "<=", "<!"})
        if (at_.take(look))
          at_.fail("has look-around (?=, ?!, ?<=, ?<!), which is not supported",
                   "say what the text is, not what stands around it");
      if (at_.take("<") || at_.take("P<")) {
        while (!at_.take(">")) at_.next();
      } else if (!at_.take(":")) {
        at_.fail("has a group of an unknown kind (flags are not supported)",
                 "write (?:...) or (...)");
      }
    }
    const Part inner = alternatives();
    if (at_.follows("$")) at_.fail("has a $ inside", "let ^ and $ stand at the ends alone");
    if (!at_.take(")")) at_.fail("lacks a )");
    return inner;
  }

  CodeSet escape(bool in_class) {
    const uint32_t c = at_.next();
    switch (c) {
      case 'd': return kDigits;
      case 'D': return complement(kDigits);
      case 'w': return kWord;
      case 'W': return complement(kWord);
      case 's': return kPlainSpace;
      case 'S': return complement(kWhiteSpace);
      case 'n': return {{'\n', '\n'}};
      case 'r': return {{'\r', '\r'}};
      case 't': return {{'\t', '\t'}};
      case 'f': return {{'\f', '\f'}};
      case 'v': return {{'\v', '\v'}};
      case '0': return {{0, 0}};
      case 'x': return one(at_.hex(2));
      case 'u': return one(at_.hex(4));
      case 'b':
        if (in_class) return {{'\b', '\b'}};
        [[fallthrough]];
      case 'B': at_.fail("has a word boundary (\\b, \\B), which is not supported");
      case 'k': at_.fail("has a back-reference, which is not supported");
      case 'p':
      case 'P':
        at_.fail("has a class of Unicode (\\p), which is not supported", "write ranges: [a-zà-ÿ]");
      default: break;
    }
    if (c >= '1' && c <= '9') at_.fail("has a back-reference, which is not supported");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
      at_.fail(fmt::format("has an unknown escape \\{}", static_cast<char>(c)));
    return one(c);
  }
  static CodeSet one(uint32_t c) { return {{c, c}}; }

  CodeSet character_class() {
    CodeSet set;
    const bool not_these = at_.take("^");
    while (!at_.take("]")) {
      const CodeSet first = member();
      CodeSet range = first;
      if (at_.follows("-") && !at_.follows("-]")) {
        at_.next();
        const CodeSet last = member();
        const auto single = [](const CodeSet& s) {
          return s.size() == 1 && s[0].first == s[0].last;
        };
        if (!single(first) || !single(last) || last[0].first < first[0].first)
          at_.fail("has a range in a class that does not go from a character to a later one");
        range = {{first[0].first, last[0].last}};
      }
      set.insert(set.end(), range.begin(), range.end());
    }
    return not_these ? complement(set) : normalized(set);
  }
  CodeSet member() { return at_.take("\\") ? escape(true) : one(at_.next()); }

  Rules& rules_;
  CharacterReader at_;
  const CharacterWriter& character_;
  bool searches_;
};

class PlainCharacter : public CharacterWriter {
 public:
  Part operator()(Rules& rules, const CodeSet& set) const override { return rules.one_of(set); }
};

}  // namespace

Part read_pattern(Rules& rules, std::string_view pattern, const CharacterWriter& character,
                  bool searches) {
  return RegexReader(rules, pattern, character, searches).run();
}

Rules read_regex(std::string_view pattern) {
  Rules rules("regular expression");
  rules.root = rules.add_rule("root");
  rules.define(rules.root, read_pattern(rules, pattern, PlainCharacter(), false));
  return rules;
}

}  // namespace mulciber
