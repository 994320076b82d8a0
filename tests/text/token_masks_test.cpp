// Masks over vocabularies: they allow what the grammar allows, token by token, and random walks
// over them give texts of the grammar.
#include "text/grammar/token_masks.h"

#include <fmt/format.h>

#include <time.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <regex>

#include "checkpoints/checkpoint.h"
#include "mulciber/error.h"
#include "mulciber/grammar.h"
#include "tests/catch.h"
#include "tests/support.h"
#include "text/tokenizer.h"

using namespace mulciber;

namespace {

std::shared_ptr<const TokenTree> tree_of(const char* tokenizer) {
  const auto folder = tests::data_dir() / "tokenizers" / tokenizer;
  return std::make_shared<const TokenTree>(
      *load_tokenizer(Checkpoint(folder, Checkpoint::Contents::kText)));
}

bool is_allowed(const TokenMask& mask, uint32_t token) {
  return (mask[token / 32] >> (token % 32) & 1) != 0;
}

std::vector<uint32_t> tokens_of(const TokenMask& mask) {
  std::vector<uint32_t> tokens;
  for (uint32_t token = 0; token < 32 * mask.size(); ++token)
    if (is_allowed(mask, token)) tokens.push_back(token);
  return tokens;
}

double cpu_milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// A text of random tokens. It ends where the grammar allows nothing more, and after `most` tokens
/// where the grammar allows an end.
std::optional<std::string> random_text(TokenMasks& masks, std::mt19937& random, int most) {
  TokenMasks::Position position = masks.begin();
  for (int i = 0; i < 20 * most; ++i) {
    const std::vector<uint32_t> tokens = tokens_of(masks.allowed(position));
    const bool may_end = masks.accepts(position);
    if (tokens.empty() || (may_end && i >= most)) {
      REQUIRE(may_end);
      return position.text();
    }
    REQUIRE(masks.push(position, tokens[random() % tokens.size()]));
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a mask allows the tokens that the grammar reads, and no others") {
  const auto tree = tree_of("gpt2");
  const auto count = static_cast<uint32_t>(tree->size());
  const std::pair<Grammar, std::vector<std::string>> rows[] = {
      {Grammar::regex("[a-c]*x?|é+\\d"), {"", "a", "cab", "é", "éé"}},
      {Grammar::gbnf("root ::= \"(\" root \")\" | [0-9]{1,3}"), {"", "(", "((1", "((", "((12)"}},
      {Grammar::json_schema(R"({"properties": {"name": {"type": "string", "maxLength": 70},
          "n": {"type": "array", "items": {"type": "integer"}}}, "required": ["name"]})"),
       {"", "{", "{\"name", "{\"name\": \"", "{\"name\":\"J\xc3", "{\"name\":\"Jo\"",
        "{\"name\":\"Jo\",\"n\":[1"}},
      {Grammar::regex("a[^x]{3,70}é{60,200}"),
       {"a", "abcd", "a" + std::string(20, 'b'), "a" + std::string(69, 'b'),
        "a" + std::string(70, 'b')}},
      {Grammar::json_schema(R"({"pattern": "^([a-zé]+ ?)*$", "minLength": 60, "maxLength": 130})"),
       {"\"", "\"a\xc3", "\"" + std::string(30, 'b'), "\"" + std::string(70, 'b') + " \xc3",
        "\"" + std::string(110, 'b') + " ", "\"" + std::string(129, 'b')}},
      {Grammar::json_object(), {"", "{\"a\":[[[{\"b\":\"", "{\"a\": -1", "{\"a\":[\"\\u1"}},
  };
  for (const auto& [grammar, texts] : rows) {
    TokenMasks masks(grammar.automaton(), tree, count);
    Matcher matcher(grammar.automaton());
    std::vector<uint32_t> bytes;  // tokens of one byte
    for (uint32_t token = 0; token < count; ++token)
      if (tree->bytes(token).size() == 1) bytes.push_back(token);
    for (const std::string& text : texts) {
      INFO(text);
      TokenMasks::Position position = masks.begin();
      Matcher::State state = matcher.start();
      for (const char c : text) {
        const auto token =
            std::ranges::find_if(bytes, [&](uint32_t id) { return tree->bytes(id)[0] == c; });
        REQUIRE(token != bytes.end());
        REQUIRE(masks.push(position, *token));
        state = matcher.next(state, static_cast<uint8_t>(c));
      }
      const TokenMask mask = masks.allowed(position);
      size_t wrong = 0;
      for (uint32_t token = 0; token < count; ++token) {
        Matcher::State after = state;
        for (const char c : tree->bytes(token))
          if (after != Matcher::kDead) after = matcher.next(after, static_cast<uint8_t>(c));
        const bool in = !tree->bytes(token).empty() && after != Matcher::kDead;
        wrong += in != is_allowed(mask, token);
      }
      CHECK(wrong == 0);
      CHECK(masks.accepts(position) == matcher.accepts(state));
    }
  }
}

TEST_CASE("far from the bounds of a pattern's length one mask serves all") {
  const Grammar grammar =
      Grammar::json_schema(R"({"pattern": "^[a-z]+é*$", "minLength": 200, "maxLength": 400})");
  Matcher matcher(grammar.automaton());
  const auto behind = [&](size_t letters) {
    Matcher::State state = matcher.next(matcher.start(), '"');
    for (size_t i = 0; i < letters; ++i) state = matcher.next(state, 'a');
    return matcher.alike(state);
  };
  CHECK(behind(20) == behind(140));
  CHECK(behind(210) == behind(340));
  CHECK(behind(20) != behind(210));
  CHECK(behind(199) != behind(198));
  CHECK(behind(399) != behind(398));
}

TEST_CASE("random walks over masks give texts of a regular expression") {
  const std::string patterns[] = {"[A-Z][a-z]{2,8}( [A-Z][a-z]+)*", "(\\d{3}-)?\\d{4}",
                                  "(yes|no|maybe so)!{0,3}", "\\w{1,9}@\\w{1,9}\\.(com|org)",
                                  "[^aeiou]{1,12}"};
  std::mt19937 random(7);
  for (const char* name : {"gpt2", "llama", "qwen2"}) {
    const auto tree = tree_of(name);
    for (const std::string& pattern : patterns) {
      TokenMasks masks(Grammar::regex(pattern).automaton(), tree,
                       static_cast<uint32_t>(tree->size()));
      const std::regex reference(pattern);
      for (int i = 0; i < 10; ++i) {
        const std::optional<std::string> text = random_text(masks, random, 12);
        INFO(name << ", " << pattern << ": " << text.value_or("-"));
        REQUIRE(text);
        // std::regex counts bytes.
        const bool ascii = std::ranges::all_of(*text, [](char c) { return c > 0; });
        if (ascii || pattern.find("{1,12}") == std::string::npos)
          CHECK(std::regex_match(*text, reference));
      }
    }
  }
}

TEST_CASE("random walks over masks of a schema give valid JSON") {
  const Grammar grammar = Grammar::json_schema(R"({
    "type": "object",
    "properties": {
      "name": {"type": "string", "minLength": 1, "maxLength": 30},
      "age": {"type": "integer", "minimum": 0, "maximum": 130},
      "share": {"type": "number", "minimum": 0, "maximum": 1},
      "kind": {"enum": ["cat", "dog", "größer"]},
      "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"},
               "minItems": 1, "maxItems": 4},
      "child": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["name", "kind", "child"]})");
  std::mt19937 random(11);
  const std::function<void(const nlohmann::json&)> check = [&](const nlohmann::json& object) {
    for (const auto& [key, value] : object.items()) {
      INFO(key << ": " << value.dump());
      if (key == "name") {
        const std::string text = value;
        const auto length = std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
        CHECK((length >= 1 && length <= 30));
      } else if (key == "age") {
        CHECK((value.is_number_integer() && value >= 0 && value <= 130));
      } else if (key == "share") {
        CHECK((value.is_number() && value >= 0 && value <= 1));
      } else if (key == "kind") {
        CHECK((value == "cat" || value == "dog" || value == "größer"));
      } else if (key == "tags") {
        CHECK((value.is_array() && value.size() >= 1 && value.size() <= 4));
        for (const std::string tag : value)
          CHECK(std::ranges::all_of(tag, [](char c) { return c >= 'a' && c <= 'z'; }));
      } else {
        CHECK(key == "child");
        if (!value.is_null()) check(value);
      }
    }
    for (const char* key : {"name", "kind", "child"}) CHECK(object.contains(key));
  };
  size_t whole = 0;
  for (const char* name : {"gpt2", "llama", "qwen2"}) {
    const auto tree = tree_of(name);
    TokenMasks masks(grammar.automaton(), tree, static_cast<uint32_t>(tree->size()));
    for (int i = 0; i < 40; ++i) {
      const std::optional<std::string> text = random_text(masks, random, 60);
      if (!text) continue;
      ++whole;
      INFO(*text);
      check(nlohmann::json::parse(*text));
    }
  }
  CHECK(whole > 60);
}

TEST_CASE("a grammar of anything allows every token with a text") {
  const auto tree = tree_of("gpt2");
  const Grammar grammar = Grammar::gbnf("root ::= ([\\x00-\\U0010FFFF])*");
  TokenMasks masks(grammar.automaton(), tree, static_cast<uint32_t>(tree->size()) + 40);
  TokenMasks::Position position = masks.begin();
  const TokenMask& mask = masks.allowed(position);
  REQUIRE(mask.size() == (tree->size() + 40 + 31) / 32);
  size_t missing = 0;
  for (uint32_t token = 0; token < tree->size(); ++token) {
    // Bytes that no character begins with never occur.
    const bool text = !tree->bytes(token).empty() &&
                      nlohmann::json(tree->bytes(token))
                              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                              .find("\xef\xbf\xbd") == std::string::npos;
    missing += text && !is_allowed(mask, token);
  }
  CHECK(missing == 0);
  for (uint32_t token = static_cast<uint32_t>(tree->size()); token < 32 * mask.size(); ++token)
    CHECK_FALSE(is_allowed(mask, token));
}

TEST_CASE("rules open in one another without end are bounded by masks") {
  const auto tree =
      std::make_shared<const TokenTree>(std::vector<std::string>{"[", "]", "[[", "1"});
  TokenMasks masks(Grammar::gbnf("root ::= \"[\" root \"]\" | \"1\"").automaton(), tree, 4);
  TokenMasks::Position position = masks.begin();
  int opened = 0;
  while (is_allowed(masks.allowed(position), 0)) {
    REQUIRE(masks.push(position, 0));
    REQUIRE(++opened < 600);
  }
  CHECK(opened > 400);
  CHECK(tokens_of(masks.allowed(position)) == std::vector<uint32_t>{3});
  CHECK_FALSE(masks.push(position, 1));
  REQUIRE(masks.push(position, 3));
  for (; opened > 0; --opened) REQUIRE(masks.push(position, 1));
  CHECK(masks.accepts(position));
}

TEST_CASE("a grammar that takes too long is refused before others have waited for it") {
  // The tokens are all texts of up to six digits.
  std::vector<std::string> tokens(1'111'110);
  uint32_t id = 0;
  for (uint32_t length = 1, count = 10; length <= 6; ++length, count *= 10)
    for (uint32_t number = 0; number < count; ++number)
      tokens[id++] = fmt::format("{:0{}}", number, length);
  const auto tree = std::make_shared<const TokenTree>(tokens);
  const Grammar grammars[] = {
      Grammar::regex("((([0-9]{1,20}){1,20}){1,20}){1,10}"),
      Grammar::gbnf("root ::= s\ns ::= [0-9] | s2 s2\ns2 ::= [0-9] s | [0-9] [0-9] s2 | [0]")};
  for (const Grammar& grammar : grammars) {
    TokenMasks masks(grammar.automaton(), tree, static_cast<uint32_t>(tokens.size()));
    TokenMasks::Position position = masks.begin();
    const double begin = cpu_milliseconds();
    std::string error;
    try {
      for (int i = 0; i < 40; ++i) {
        const TokenMask& mask = masks.allowed(position);
        REQUIRE(is_allowed(mask, 7));
        REQUIRE(masks.push(position, 7));
      }
    } catch (const ModelError& refused) {
      error = refused.what();
    }
    INFO(position.text() << ", " << cpu_milliseconds() - begin << " ms");
    CHECK(error.find("takes too long") != std::string::npos);
  }
  // States that depend on only a few bytes add no cost later.
  TokenMasks masks(Grammar::regex("[0-9]*1[0-9]{3}").automaton(), tree,
                   static_cast<uint32_t>(tokens.size()));
  TokenMasks::Position position = masks.begin();
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    masks.allowed(position);
    REQUIRE(masks.push(position, random() % 10));
  }
}

TEST_CASE("tokens of equal bytes are allowed alike") {
  const auto tree =
      std::make_shared<const TokenTree>(std::vector<std::string>{"ab", "a", "", "ab", "abc", "a"});
  TokenMasks masks(Grammar::regex("ab").automaton(), tree, 6);
  TokenMasks::Position position = masks.begin();
  CHECK(tokens_of(masks.allowed(position)) == std::vector<uint32_t>{0, 1, 3, 5});
  CHECK_FALSE(masks.push(position, 2));
  CHECK_FALSE(masks.push(position, 77));
}

// This test only measures, so it is hidden: times do not decide right or wrong.
TEST_CASE("time of masks over a large vocabulary", "[.][time]") {
  std::vector<std::string> tokens;
  std::mt19937 random(3);
  const auto base = tree_of("gpt2");
  for (uint32_t id = 0; id < base->size(); ++id) tokens.push_back(base->bytes(id));
  // Tokens like those of models: words of letters, with and without a space, in several scripts.
  while (tokens.size() < 150000) {
    std::string word = random() % 3 != 0 ? " " : "";
    const bool ascii = random() % 4 != 0;
    for (uint32_t i = 0, n = 2 + random() % 9; i < n; ++i) {
      if (ascii)
        word += static_cast<char>('a' + random() % 26);
      else
        word += {static_cast<char>(0xd0 + random() % 2), static_cast<char>(0x80 + random() % 64)};
    }
    tokens.push_back(random() % 40 == 0 ? word + "\"," : word);
  }
  const auto tree = std::make_shared<const TokenTree>(tokens);
  const std::pair<const char*, Grammar> grammars[] = {
      {"schema", Grammar::json_schema(R"({"properties": {"name": {"type": "string"},
        "note": {"type": "string", "maxLength": 200}, "id": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "kind": {"enum": ["a", "b"]}}, "required": ["name", "note", "id", "tags", "kind"]})")},
      {"object", Grammar::json_object()},
      {"regex", Grammar::regex("([A-Z][a-z]+ ){3}[^\\d]*")}};
  for (const auto& [name, grammar] : grammars) {
    TokenMasks masks(grammar.automaton(), tree, static_cast<uint32_t>(tokens.size()));
    std::vector<double> times;
    std::string worst;
    for (int walk = 0; walk < 20; ++walk) {
      TokenMasks::Position position = masks.begin();
      for (int i = 0; i < 60; ++i) {
        const double start = cpu_milliseconds();
        const TokenMask& mask = masks.allowed(position);
        const double took = cpu_milliseconds() - start;
        if (times.empty() || took > *std::ranges::max_element(times)) worst = position.text();
        times.push_back(took);
        const std::vector<uint32_t> allowed = tokens_of(mask);
        if (allowed.empty()) break;
        REQUIRE(masks.push(position, allowed[random() % allowed.size()]));
      }
    }
    const double first = times.front();
    double sum = 0;
    for (const double time : times) sum += time;
    std::ranges::sort(times);
    fmt::print(
        "{}: {} masks, first {:.3f} ms, median {:.3f}, mean {:.3f}, 95 % {:.3f}, most {:.3f} ms "
        "behind '{}'\n",
        name, times.size(), first, times[times.size() / 2], sum / static_cast<double>(times.size()),
        times[times.size() * 95 / 100], times.back(), worst);
  }
}
