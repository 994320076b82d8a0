// Answers by a grammar: one text, several, and texts that come and go; with and without sampling.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>

#include "mulciber/error.h"
#include "mulciber/grammar.h"
#include "tests/batch_requests.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kCompletionSchema = R"({"type": "object", "properties": {
    "size": {"type": "integer", "minimum": 1, "maximum": 99},
    "kind": {"enum": ["nail", "hammer"]},
    "word": {"type": "string", "minLength": 2, "maxLength": 5}},
  "required": ["size", "kind", "word"]})";

void check_object(const std::string& text) {
  INFO(text);
  const nlohmann::ordered_json object = nlohmann::ordered_json::parse(text);
  REQUIRE(object.size() == 3);
  CHECK(object.begin().key() == "size");
  CHECK((object["size"] >= 1 && object["size"] <= 99));
  CHECK((object["kind"] == "nail" || object["kind"] == "hammer"));
  CHECK(object["word"].is_string());
}

const std::string kCompletionPrompt = "The red hammer and the blue nails";
const Grammar kAnything = Grammar::gbnf("root ::= [\\x00-\\U0010FFFF]*");

}  // namespace

TEST_CASE("Answers by a schema are valid, likeliest or drawn") {
  TextGenerator generator(shared_handle(), small_model(), {.context = 128});
  GenerateOptions options = {.grammar = Grammar::json_schema(kCompletionSchema)};
  std::vector<std::string> drawn;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    options.sampling = Sampling{.temperature = seed == 0 ? 0.f : 1.3f, .seed = seed};
    std::string shown;
    options.on_text = [&](std::string_view piece) { shown += piece; };
    const Generation answer = generator.generate(kCompletionPrompt, options);
    check_object(answer.text);
    CHECK(shown == answer.text);
    CHECK(answer.end == GenerateEnd::kEndOfText);
    drawn.push_back(answer.text);
  }
  std::ranges::sort(drawn);
  CHECK(drawn.front() != drawn.back());
  // The cached prompt of the last answer is reused.
  options.sampling = Sampling{};
  options.on_text = nullptr;
  const Generation again = generator.generate(kCompletionPrompt, options);
  CHECK(generator.statistics().reused_tokens > 0);
  check_object(again.text);
}

TEST_CASE("A grammar of anything changes nothing") {
  TextGenerator generator(shared_handle(), small_model(), {.context = 96});
  for (const float temperature : {0.f, 1.2f}) {
    GenerateOptions options = {.sampling = Sampling{.temperature = temperature, .seed = 5},
                               .max_new_tokens = 24};
    const Generation plain = generator.generate(kCompletionPrompt, options);
    options.grammar = kAnything;
    const Generation same = generator.generate(kCompletionPrompt, options);
    // The grammar of any text does not match bytes that are not characters.
    if (plain.text.find("\xef\xbf\xbd") == std::string::npos) {
      CHECK(same.ids == plain.ids);
      CHECK(same.end == plain.end);
    }
    options.grammar.reset();
    CHECK(generator.generate(kCompletionPrompt, options).ids == plain.ids);
  }
}

TEST_CASE("An end of text comes where the grammar allows one") {
  TextGenerator generator(shared_handle(), small_model(), {.context = 96});
  const std::regex pattern("[a-z]{3,5}(-[0-9]{2})+");
  for (const bool ignore_end : {false, true}) {
    for (uint64_t seed = 1; seed < 8; ++seed) {
      const Generation answer = generator.generate(
          kCompletionPrompt, {.sampling = Sampling{.temperature = 1.5f, .seed = seed},
                              .max_new_tokens = 60,
                              .ignore_end = ignore_end,
                              .grammar = Grammar::regex("[a-z]{3,5}(-[0-9]{2})+")});
      INFO(answer.text);
      if (answer.end == GenerateEnd::kEndOfText) CHECK(std::regex_match(answer.text, pattern));
      if (ignore_end) CHECK(answer.end == GenerateEnd::kTokenLimit);
    }
  }
  const Generation nothing = generator.generate(kCompletionPrompt, {.grammar = Grammar::regex("")});
  CHECK(nothing.text.empty());
  CHECK(nothing.end == GenerateEnd::kEndOfText);
  CHECK(
      generator.generate(kCompletionPrompt, {.max_new_tokens = 3, .grammar = Grammar::regex("abc")})
          .text == "abc");
}

TEST_CASE("Several texts answer by one grammar, each for itself") {
  TextGenerator generator(shared_handle(), small_model(), {.context = 128, .sequences = 3});
  const std::vector<std::string> prompts = {"A", kCompletionPrompt, "An old house", "The"};
  const GenerateOptions options = {.sampling = Sampling{.temperature = 1, .seed = 3},
                                   .grammar = Grammar::json_schema(kCompletionSchema)};
  for (const Generation& answer : generator.generate_all(prompts, options))
    check_object(answer.text);
}

TEST_CASE("Requests with a grammar and without share a batch") {
  const Grammar grammar = Grammar::json_schema(kCompletionSchema);
  TextGenerator generator(shared_handle(), small_model(), {.context = 128});
  const Sampling sampling = {.temperature = 1.1f, .seed = 9};
  const Generation plain = generator.generate(
      kCompletionPrompt, {.sampling = sampling, .max_new_tokens = 30, .ignore_end = true});
  const Generation valid =
      generator.generate(kCompletionPrompt, {.sampling = sampling, .grammar = grammar});
  BatchGenerator batch = batch_of(3, 128);
  std::vector<Told> told(7);
  for (size_t i = 0; i < told.size(); ++i) {
    BatchRequest request;
    request.prompt = kCompletionPrompt;
    request.sampling = sampling;
    if (i % 2 == 0) {
      request.grammar = grammar;
    } else {
      request.max_new_tokens = 30;
      request.ignore_end = true;
    }
    submit(batch, request, told[i]);
  }
  while (batch.step()) {
  }
  for (size_t i = 0; i < told.size(); ++i) {
    REQUIRE(told[i].end);
    CHECK(told[i].error.empty());
    CHECK(told[i].ids == (i % 2 == 0 ? valid.ids : plain.ids));
    CHECK(told[i].end->end == (i % 2 == 0 ? GenerateEnd::kEndOfText : GenerateEnd::kTokenLimit));
  }
  check_object(valid.text);
  Told empty;
  BatchRequest request;
  request.prompt = kCompletionPrompt;
  request.grammar = Grammar::regex("");
  submit(batch, request, empty);
  while (batch.step()) {
  }
  REQUIRE(empty.end);
  CHECK(empty.ids.empty());
}

TEST_CASE("Where no token is possible an answer ends in an error") {
  BatchGenerator batch = batch_of(2);
  BatchRequest request;
  request.prompt = kCompletionPrompt;
  request.grammar = Grammar::regex("a+");
  // Forbids the tokens that begin with an a.
  for (uint32_t id = 0; id < batch.vocabulary(); ++id) {
    if (batch.token_text(id).starts_with("a") || batch.token_text(id) == "<0x61>")
      request.logit_bias.emplace_back(id, -std::numeric_limits<float>::infinity());
  }
  Told told, other;
  submit(batch, request, told);
  request.logit_bias.clear();
  request.grammar = Grammar::regex("a{7}");
  submit(batch, request, other);
  while (batch.step()) {
  }
  CHECK_FALSE(told.end);
  CHECK_THAT(told.error, ContainsSubstring("have no probability"));
  REQUIRE(other.end);
  CHECK(other.text == "aaaaaaa");
}
