// A grammar as its notations describe it: rules of expressions over characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mulciber {

/// Code points [first, last].
struct CodeRange {
  uint32_t first, last;
};
/// A set of characters. Functions return it sorted, without overlaps and without surrogates.
using CodeSet = std::vector<CodeRange>;
CodeSet normalized(const CodeSet& set);
CodeSet complement(const CodeSet& set);
/// Characters of `set` that are not in `taken`.
CodeSet without(const CodeSet& set, const CodeSet& taken);

/// Bytes for which rules, and states of an automaton, that are `alike` have equal continuations.
constexpr uint32_t kAlikeBytes = 48;

/// An expression of a Rules, by number.
using Part = uint32_t;

constexpr uint32_t kUnbounded = UINT32_MAX;

/// Limits of a grammar. A compiler that exceeds one throws ModelError with the number.
constexpr size_t kMostGrammarBytes = size_t{1} << 20;  // bytes of the grammar's text
constexpr size_t kMostGrammarNesting = 64;             // depth of parentheses or schemas
constexpr size_t kMostGrammarStates = 200'000;         // states of the automaton, and expressions
constexpr uint32_t kMostRepetitions = 100'000;         // {m,n}

class Rules {
 public:
  enum class Kind { kText, kClass, kSequence, kChoice, kRepeat, kRule };
  struct Expression {
    Kind kind = Kind::kText;
    std::string text = {};         // bytes
    CodeSet set = {};              // a character
    std::vector<Part> parts = {};  // parts of a sequence or choice; or the repeated part
    uint32_t least = 0, most = 0;  // repetitions
    uint32_t rule = 0;             // the called rule
  };
  struct Rule {
    std::string name;  // name for errors
    Part body = 0;
    bool defined = false;
    uint32_t alike = 0;  // a rule that is alike for kAlikeBytes bytes; its own number: none
  };

  /// notation: what errors call the text ("JSON schema").
  explicit Rules(std::string notation) : notation_(std::move(notation)) {}

  Part text(std::string_view bytes);
  Part one_of(const CodeSet& set);
  Part one_of(uint32_t first, uint32_t last) { return one_of(CodeSet{{first, last}}); }
  Part sequence(std::vector<Part> parts);
  /// A choice without parts matches nothing.
  Part choice(std::vector<Part> parts);
  Part optional(Part part) { return repeat(part, 0, 1); }
  /// Throws ModelError for more than kMostRepetitions.
  Part repeat(Part part, uint32_t least, uint32_t most);
  Part call(uint32_t rule);

  uint32_t add_rule(std::string name);
  void define(uint32_t rule, Part body);
  /// States that `rule` has the same continuations as `other` for the next kAlikeBytes bytes, and a
  /// body of equal form.
  void alike(uint32_t rule, uint32_t other) { rules_[rule].alike = other; }
  /// Makes a new rule and returns a call of it.
  Part shared(std::string name, Part body);

  uint32_t root = 0;  // the rule that a whole text matches

  const std::string& notation() const { return notation_; }
  const Expression& operator[](Part part) const { return expressions_[part]; }
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  Part add(Expression expression);

  std::string notation_;
  std::vector<Expression> expressions_;
  std::vector<Rule> rules_;
};

[[noreturn]] void refuse_grammar(const std::string& notation, std::string problem,
                                 std::string remedy);

/// The three notations. Each throws ModelError naming the place of a mistake, an unsupported
/// construct, or an exceeded limit.
Rules read_gbnf(std::string_view text);
Rules read_regex(std::string_view pattern);
Rules read_json_schema(std::string_view schema);

/// Reads a pattern as a part of `rules`. `character`: makes the expression for a set of characters,
/// so that quoted texts can use other spellings. searches: the pattern may match anywhere in the
/// text unless ^ and $ bind it.
class CharacterWriter {
 public:
  virtual ~CharacterWriter() = default;
  virtual Part operator()(Rules& rules, const CodeSet& set) const = 0;
};
Part read_pattern(Rules& rules, std::string_view pattern, const CharacterWriter& character,
                  bool searches);

}  // namespace mulciber
