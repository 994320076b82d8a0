// Answers by a grammar in slices: they are those of generate(), bit for bit.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "mulciber/embedding.h"
#include "mulciber/error.h"
#include "mulciber/mulciber_c.h"
#include "runtime/device.h"
#include "tests/application_destination.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"
#include "tests/vulkan_application.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kTaskSchema = R"({"type": "object", "properties": {
    "size": {"type": "integer", "minimum": 1, "maximum": 99},
    "word": {"type": "string", "minLength": 2, "maxLength": 5}},
  "required": ["size", "word"]})";
constexpr const char* kList = R"(root ::= ("nail" | "hammer") ([ ,] [a-z]+)* ".")";

const std::string kTaskPrompt = "The red hammer and the blue nails of the old house";

/// Runs a task to its end in slices of random budgets, recorded or submitted, and checks that
/// nothing is allocated or compiled.
void run_at_random(Device& device, ApplicationCommands& commands, FrameTask& task,
                   std::mt19937& random) {
  const uint64_t allocations = device.counters().allocations,
                 pipelines = device.counters().pipelines;
  const bool records = random() % 2 == 0;
  while (!task.done()) {
    const auto budget = static_cast<double>(random() % 800);
    if (!records) {
      task.step(budget);
      if (random() % 2 == 0) task.wait();
      continue;
    }
    FrameSlice slice;
    commands.run([&](VkCommandBuffer buffer) { slice = task.record(buffer, budget); });
    REQUIRE(slice.number > 0);
    task.completed(slice.number);
  }
  CHECK(device.counters().allocations == allocations);
  CHECK(device.counters().pipelines == pipelines);
}

void check_same_generation(const Generation& found, const Generation& expected) {
  CHECK(found.ids == expected.ids);
  CHECK(found.text == expected.text);
  CHECK(found.end == expected.end);
  CHECK(found.prompt_ids == expected.prompt_ids);
}

}  // namespace

TEST_CASE("An answer by a grammar in slices is that of the whole call") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  ApplicationCommands commands(application);
  TextGenerator whole(device, small_decoder().string(), {.context = 128}),
      cut(device, small_decoder().string(), {.context = 128});
  std::mt19937 random(5);
  size_t complete = 0, cut_off = 0;
  for (const Grammar& grammar :
       {Grammar::json_schema(kTaskSchema), Grammar::regex("[a-z]{3,5}(-[0-9]{2})+"),
        Grammar::gbnf(kList), Grammar::regex("abc"), Grammar::regex("")}) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      GenerateOptions options = {.sampling = Sampling{.temperature = seed == 0 ? 0.f : 1.3f,
                                                      .repetition_penalty = 1.1f,
                                                      .seed = seed},
                                 .max_new_tokens = seed == 3 ? 3u : 0u,
                                 .ignore_end = seed == 2,
                                 .grammar = grammar};
      if (seed == 1) options.stop = {"e"};
      // The second run reuses the cached prompt.
      const std::string prompt = kTaskPrompt + std::string(seed, 's');
      const Generation expected = whole.generate(prompt, options);
      std::string streamed;
      options.on_text = [&](std::string_view piece) { streamed += piece; };
      GenerationTask task(cut, prompt, options);
      run_at_random(*device, commands, task, random);
      const Generation found = task.result();
      check_same_generation(found, expected);
      CHECK(streamed == expected.text);
      complete += found.end == GenerateEnd::kEndOfText;
      cut_off += found.end == GenerateEnd::kTokenLimit;
    }
  }
  CHECK(complete > 5);
  CHECK(cut_off > 1);
  // Without a grammar the next answer may have any text again.
  const GenerateOptions plain = {.max_new_tokens = 12, .ignore_end = true};
  const Generation expected = whole.generate(kTaskPrompt, plain);
  GenerationTask task(cut, kTaskPrompt, plain);
  run_at_random(*device, commands, task, random);
  check_same_generation(task.result(), expected);
}

TEST_CASE("Logits in slices stand as the grammar leaves them") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  ApplicationCommands commands(application);
  TextGenerator generator(device, small_decoder().string(), {.context = 64});
  const uint32_t vocabulary = generator.vocabulary();
  const Destination logits(*device, uint64_t{8} * vocabulary);
  GenerationTask task(generator, kTaskPrompt, {.grammar = Grammar::regex("abc")},
                      {.logits = logits.buffer});
  std::mt19937 random(2);
  run_at_random(*device, commands, task, random);
  const Generation answer = task.result();
  REQUIRE(answer.text == "abc");
  for (size_t i = 0; i < answer.ids.size(); ++i) {
    const float* row = logits.floats() + i * vocabulary;
    CHECK(std::max_element(row, row + vocabulary) - row == answer.ids[i]);
    // Only "a", "b" and "c" and tokens that end or begin them are allowed.
    CHECK(std::count_if(row, row + vocabulary, [](float one) { return one > -1e30f; }) <= 4);
  }
}

TEST_CASE("A task ends in an error where no token leads on in its grammar, and its model goes on") {
  VulkanApplication application;
  const auto device = adopt_device(application.lent());
  TextGenerator generator(device, small_decoder().string(), {.context = 64}),
      fresh(device, small_decoder().string(), {.context = 64});
  // Rules nest deeper than masks follow, after the first token.
  std::string rules = "root ::= \"ab\" r0\n";
  for (int i = 0; i < 600; ++i)
    rules += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"x\" | \"y\" r" +
             std::to_string(i + 1) + "\n";
  const GenerateOptions options = {.max_new_tokens = 8,
                                   .grammar = Grammar::gbnf(rules + "r600 ::= \"c\"\n")};
  const std::string expected =
      model_error([&] { fresh.generate(kTaskPrompt, options); }).value_or("no error");
  REQUIRE_THAT(expected, ContainsSubstring("no token of the model leads on"));
  {
    GenerationTask task(generator, kTaskPrompt, options);
    while (!task.done()) {
      task.step(1000);
      task.wait();
    }
    CHECK(model_error([&] { task.result(); }) == expected);
    CHECK(model_error([&] { task.result(); }) == expected);
  }
  const GenerateOptions plain = {.max_new_tokens = 8, .ignore_end = true};
  CHECK(generator.generate(kTaskPrompt, plain).ids == fresh.generate(kTaskPrompt, plain).ids);
}

TEST_CASE("Answers by a grammar in C are those in C++") {
  const Session session(small_decoder().string());
  MulciberContext* c = session.c;
  MulciberLoadInfo load = {sizeof(load)};
  load.context = 64;
  MulciberGenerator* generator = nullptr;
  REQUIRE(mulciber_load_generator(c, session.device, session.model, &load, &generator) ==
          MULCIBER_OK);
  TextGenerator same(adopt_device(session.application.lent()), small_decoder().string(),
                     {.context = 64});
  const std::pair<MulciberGrammarKind, const char*> texts[] = {
      {MULCIBER_GRAMMAR_JSON_SCHEMA, kTaskSchema},
      {MULCIBER_GRAMMAR_JSON_OBJECT, nullptr},
      {MULCIBER_GRAMMAR_REGEX, "[0-9]{4}-[0-9]{2}"},
      {MULCIBER_GRAMMAR_GBNF, kList}};
  const Grammar expected[] = {Grammar::json_schema(kTaskSchema), Grammar::json_object(),
                              Grammar::regex("[0-9]{4}-[0-9]{2}"), Grammar::gbnf(kList)};
  for (size_t i = 0; i < std::size(texts); ++i) {
    MulciberGrammar* grammar = nullptr;
    REQUIRE(mulciber_make_grammar(c, texts[i].first, texts[i].second, &grammar) == MULCIBER_OK);
    MulciberGenerateInfo info = {sizeof(info)};
    info.max_new_tokens = 24;
    info.grammar = grammar;
    MulciberTask* task = nullptr;
    REQUIRE(mulciber_begin_generation(c, generator, kTaskPrompt.c_str(), &info, &task) ==
            MULCIBER_OK);
    mulciber_destroy_grammar(grammar);
    session.finish(task);
    const Generation answer =
        same.generate(kTaskPrompt, {.max_new_tokens = 24, .grammar = expected[i]});
    MulciberText found = {sizeof(found)};
    REQUIRE(mulciber_so_far(c, task, &found) == MULCIBER_OK);
    CHECK(found.complete);
    CHECK(found.text == answer.text);
    CHECK(std::vector(found.ids, found.ids + found.id_count) == answer.ids);
    mulciber_destroy_task(task);
    // The structure is that of a program built against a header without grammars.
    info.size = 64;
    REQUIRE(mulciber_begin_generation(c, generator, kTaskPrompt.c_str(), &info, &task) ==
            MULCIBER_OK);
    session.finish(task);
    const char* text = nullptr;
    REQUIRE(mulciber_text(c, task, &text) == MULCIBER_OK);
    CHECK(text == same.generate(kTaskPrompt, {.max_new_tokens = 24}).text);
    mulciber_destroy_task(task);
  }
  MulciberGrammar* refused = nullptr;
  CHECK(mulciber_make_grammar(c, MULCIBER_GRAMMAR_REGEX, "(", &refused) == MULCIBER_ERROR_MODEL);
  CHECK(mulciber_make_grammar(c, MULCIBER_GRAMMAR_GBNF, nullptr, &refused) ==
        MULCIBER_ERROR_SETTING);
  CHECK(mulciber_make_grammar(c, static_cast<MulciberGrammarKind>(9), "a", &refused) ==
        MULCIBER_ERROR_SETTING);
  CHECK_THAT(session.context.message(), ContainsSubstring("MulciberGrammarKind"));
  CHECK(refused == nullptr);
  mulciber_destroy_grammar(refused);
  mulciber_destroy_generator(generator);
}
