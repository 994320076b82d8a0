// Grammars: what each notation accepts and refuses, and the limits.
#include "mulciber/grammar.h"

#include <string>
#include <vector>

#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "text/grammar/matcher.h"

using namespace mulciber;

namespace {

bool grammar_accepts(const Grammar& grammar, std::string_view text) {
  Matcher matcher(grammar.automaton());
  Matcher::State state = matcher.start();
  for (const char c : text) {
    state = matcher.next(state, static_cast<uint8_t>(c));
    if (state == Matcher::kDead) return false;
  }
  return matcher.accepts(state);
}

/// The error message of a grammar; empty where it is compiled.
template <typename Action>
std::string error_of(Action&& action) {
  return tests::model_error(action).value_or("");
}

auto says(const std::string& part) { return Catch::Matchers::ContainsSubstring(part); }

struct GrammarTexts {
  std::string grammar;
  std::vector<std::string> in, out;
};

void check_grammar(const GrammarTexts& row, Grammar (*compile)(std::string_view)) {
  INFO(row.grammar);
  const Grammar grammar = compile(row.grammar);
  for (const std::string& text : row.in) {
    INFO("should be accepted: " << text);
    CHECK(grammar_accepts(grammar, text));
  }
  for (const std::string& text : row.out) {
    INFO("should be refused: " << text);
    CHECK_FALSE(grammar_accepts(grammar, text));
  }
}

}  // namespace

TEST_CASE("regular expressions accept whole texts") {
  const GrammarTexts rows[] = {
      {"a", {"a"}, {"", "b", "aa"}},
      {"", {""}, {"a"}},
      {"ab*c", {"ac", "abc", "abbbc"}, {"abb", "c"}},
      {"a+", {"a", "aaaa"}, {""}},
      {"a?b", {"b", "ab"}, {"aab"}},
      {"(ab|cd)+", {"ab", "cdab"}, {"", "abc"}},
      {"a{3}", {"aaa"}, {"aa", "aaaa"}},
      {"a{2,}", {"aa", "aaaaa"}, {"a"}},
      {"(ab){1,3}", {"ab", "ababab"}, {"", "abababab"}},
      {"a{0}", {""}, {"a"}},
      {"x{a", {"x{a"}, {"x"}},
      {"[a-c]", {"a", "c"}, {"d", ""}},
      {"[^a-c]", {"d", "é", "\n"}, {"a"}},
      {"[]-]x|[-a]", {"-", "a"}, {"x"}},
      {"\\d{2}-\\w+", {"12-a_9"}, {"1-a", "12-é"}},
      {"\\W", {"é", " "}, {"a", "_"}},
      {"\\s\\S", {" a", "\tz"}, {"a ", "  "}},
      {".", {"a", "ß", "€", "😀"}, {"", "\n", "ab", "\xc3", "\xed\xa0\x80"}},
      {"[à-ÿ]+", {"é", "àÿ"}, {"e", "\xc3"}},
      {"[\xf0\x9f\x98\x80-\xf0\x9f\x98\x82]", {"😁"}, {"😃"}},
      {"\\u00e9\\x41\\.", {"éA."}, {"éAx"}},
      {"^(a|b)$|^c$", {"a", "b", "c"}, {"^a"}},
      {"a*?b", {"aab"}, {"a"}},
      {"(?:a|(?<name>b))c", {"ac", "bc"}, {"c"}},
      {"(a|ab)(c|bcd)(d*)", {"abcd", "acd", "abbcddd"}, {"ab"}},
      {"((a{1,50}){1,50}){1,20}", {"a", std::string(1000, 'a')}, {"", "b"}},
      {"(a*)*", {"", "aaa"}, {"b"}},
  };
  for (const GrammarTexts& row : rows) check_grammar(row, Grammar::regex);
}

TEST_CASE("what is not regular is refused by name") {
  const std::pair<const char*, const char*> rows[] = {
      {"(a)\\1", "back-reference"},
      {"(?=a)b", "look-around"},
      {"(?<!a)b", "look-around"},
      {"a\\b", "word boundary"},
      {"(a", "lacks a )"},
      {"a)", "without its ("},
      {"*a", "repeats nothing"},
      {"a**", "repeats a repetition"},
      {"[z-a]", "range"},
      {"[a", "ends too early"},
      {"a++", "possessive"},
      {"(?i)a", "unknown kind"},
      {"x(a$)", "$ inside"},
      {"x^a", "^ inside"},
      {"a{3,2}", "at least more often"},
      {"[^\\d\\D]a", "matches no text"},
      {"\\q", "unknown escape"},
      {"\\p{L}", "\\p"},
      {"\xff", "UTF-8"},
      {"(a{1000}b){1000}c{100001}", "repeats something 100001"}};
  for (const auto& [pattern, problem] : rows) {
    INFO(pattern);
    CHECK_THAT(error_of([&pattern = pattern] { Grammar::regex(pattern); }), says(problem));
  }
}

TEST_CASE("GBNF grammars accept the texts of their root") {
  const GrammarTexts rows[] = {
      {"root ::= \"a\" | \"b\" root", {"a", "bba"}, {"", "b", "ab"}},
      {"root ::= list\nlist ::= item (\",\" item)*\nitem ::= [0-9]+", {"1", "12,3,4"}, {"1,", ","}},
      {"# comment\nroot ::= # another\n  \"x\"{2,3} \"y\"? # end\n", {"xx", "xxxy"}, {"x", "xxxx"}},
      {"root ::= (\n \"a\"\n | \"b\"\n)+", {"ab", "a"}, {""}},
      {"root ::= \"a\"\n  | \"b\"\nother ::= \"c\"", {"a", "b"}, {"c"}},
      {"root ::= \"\\x41\\u00e9\\U0001F600\\n\\\"\"", {"Aé😀\n\""}, {"A"}},
      {"root ::= [^\\n\\]x-]+ .", {"ab\n", "é!"}, {"x", "]a"}},
      {"root ::= e\ne ::= t \"+\" e | t\nt ::= \"(\" e \")\" | \"1\"",
       {"1", "1+1", "((1)+1)+1", std::string(40, '(') + "1" + std::string(40, ')')},
       {"(1", "1+", "()"}},
      {"root ::= \"a\" root \"b\" | \"\"", {"", "ab", "aaabbb"}, {"aab", "ba"}},
      {"root ::= \"a\" root \"x\" | \"a\" root \"y\" | \"z\"",
       {"z", "azx", std::string(60, 'a') + "z" + std::string(60, 'y')},
       {"az", "azxx"}},
      {"root ::= n n n\nn ::= [ab]?", {"", "ab", "abb"}, {"abab"}},
      {"root ::= a\na ::= b\nb ::= c \"!\"\nc ::= \"x\" | \"x\" c", {"x!", "xxx!"}, {"!"}},
      {"root ::= \"a\"{,2} \"b\"{ 1 , 2 }", {"b", "aabb"}, {"aaab", ""}},
  };
  for (const GrammarTexts& row : rows) check_grammar(row, Grammar::gbnf);
}

TEST_CASE("mistakes in GBNF are refused where they stand") {
  const std::pair<const char*, const char*> rows[] = {
      {"", "no rule 'root'"},
      {"a ::= \"b\"", "no rule 'root'"},
      {"root ::= a", "'a', which it does not define"},
      {"root ::= root \"a\" | \"b\"", "'root' may begin with itself"},
      {"root ::= x \"a\" | \"b\"\nx ::= \"c\"? root", "left recursion"},
      {"root ::= \"a\" root", "matches no text"},
      {"root ::= \"a", "closing \""},
      {"root ::= [a", "closing ]"},
      {"root ::= (\"a\"", "lacks a )"},
      {"root = \"a\"", "lacks ::="},
      {"root ::= \"a\"\nroot ::= \"b\"", "twice"},
      {"root ::= \"a\" )", "unexpected ')'"},
      {"root ::= \"a\"{x}", "{m,n}"},
      {"root ::= \"\\q\"", "unknown escape"},
      {"root ::= <[1]>", "tokens"},
      {"root ::= \"\\ud800\"", "no character"},
      {"root ::= \"ab\"{1,1000000000}", "repeats something 1000000000"},
      {"root ::= (\"ab\" | [à-ÿ]){100000} (\"b\" \"d\"){100000}", "200000 states"}};
  for (const auto& [text, problem] : rows) {
    INFO(text);
    CHECK_THAT(error_of([&text = text] { Grammar::gbnf(text); }), says(problem));
  }
  CHECK_THAT(error_of([&] { Grammar::gbnf("root ::= \"a\"\n  %"); }), says("line 2, column 3"));
  CHECK_THAT(error_of([&] { Grammar::gbnf("root ::= " + std::string(10000, '(')); }),
             says("64 parentheses"));
  CHECK_THAT(error_of([&] { Grammar::gbnf(std::string((1 << 20) + 1, ' ')); }),
             says("1048577 bytes"));
}
