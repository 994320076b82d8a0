// Options of a TextGenerator that it shares with a BatchGenerator: prompts of ids, biases, log
// probabilities, streams; and memory that generators give back.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "mulciber/embedding.h"
#include "mulciber/error.h"
#include "tests/application_destination.h"
#include "tests/batch_requests.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kOptionsPrompt = "The red hammer and the";

TextGenerator options_generator(KeyValueStorage storage = KeyValueStorage::kF16,
                                uint32_t sequences = 1) {
  return {shared_handle(),
          small_model(),
          {.key_values = storage, .context = 96, .sequences = sequences}};
}

/// Checks log probabilities of a completion against scores, which come from other passes.
void check_probabilities(TextGenerator& generator, const Generation& found, size_t likeliest) {
  const auto first = static_cast<std::ptrdiff_t>(found.prompt_ids.size());
  std::vector<uint32_t> ids = found.prompt_ids;
  ids.insert(ids.end(), found.ids.begin(), found.ids.end());
  const std::vector<ScoreInput> inputs = {{.ids = ids}};
  const TextScore score =
      generator.score(inputs, {.likeliest = static_cast<uint32_t>(likeliest)}).texts[0];
  REQUIRE(score.tokens.size() + 1 == ids.size());
  REQUIRE(found.log_probabilities.size() == found.ids.size());
  for (size_t i = 0; i < found.ids.size(); ++i) {
    const TokenProbabilities& known = found.log_probabilities[i];
    const TokenScore& expected = score.tokens[static_cast<size_t>(first) - 1 + i];
    REQUIRE(expected.id == found.ids[i]);
    CHECK(std::fabs(known.chosen - expected.log_probability) < 1e-4);
    REQUIRE(known.likeliest.size() == likeliest);
    for (size_t rank = 0; rank < likeliest; ++rank)
      CHECK(std::fabs(known.likeliest[rank].log_probability -
                      expected.likeliest[rank].log_probability) < 1e-4);
  }
}

}  // namespace

TEST_CASE("A prompt of ids is the text that they are of") {
  TextGenerator generator = options_generator();
  const std::vector<uint32_t> ids = generator.tokens(kOptionsPrompt),
                              bare = generator.tokens(kOptionsPrompt, {.add_special = false});
  CHECK(ids.size() == generator.count_tokens(kOptionsPrompt));
  CHECK(ids == batch_of(1).tokens(kOptionsPrompt));
  REQUIRE(ids.size() == bare.size() + 1);  // <bos>
  CHECK(std::equal(bare.begin(), bare.end(), ids.begin() + 1));
  CHECK(generator.text(ids) == kOptionsPrompt);
  GenerateOptions options = {.max_new_tokens = 8, .ignore_end = true};
  const Generation expected = generator.generate(kOptionsPrompt, options);
  CHECK(expected.prompt_ids == ids);
  options.prompt_ids = ids;
  const Generation found = generator.generate("", options);
  CHECK(found.ids == expected.ids);
  CHECK(found.prompt_ids == ids);
  options.prompt_ids = bare;
  options.add_special = true;  // of texts alone
  CHECK(generator.generate(kOptionsPrompt, options).prompt_ids == bare);

  options.prompt_ids.clear();
  const std::string texts[] = {kOptionsPrompt, "An old house"};
  const std::vector<std::vector<uint32_t>> lists = {ids, generator.tokens(texts[1])};
  const std::vector<Generation> of_texts = generator.generate_all(texts, options),
                                of_ids = generator.generate_all(lists, options);
  REQUIRE(of_ids.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(of_ids[i].prompt_ids == lists[i]);
    CHECK(of_ids[i].ids == of_texts[i].ids);
  }

  options.prompt_ids = ids;
  CHECK_THROWS_WITH(generator.generate_all(texts, options), ContainsSubstring("prompt_ids"));
  options.prompt_ids.assign(96, ids[1]);
  CHECK_THAT(model_error([&] { generator.generate("", options); }).value_or(""),
             ContainsSubstring("has 96 tokens, which leaves no room"));
  options.prompt_ids = {generator.vocabulary()};
  CHECK_THAT(model_error([&] { generator.generate("", options); }).value_or(""),
             ContainsSubstring("the model's are below"));
  const std::vector<std::vector<uint32_t>> none = {{}};
  options.prompt_ids.clear();
  CHECK_THAT(model_error([&] { generator.generate_all(none, options); }).value_or(""),
             ContainsSubstring("has no tokens"));
  CHECK_THROWS_AS(generator.text(std::vector{generator.vocabulary()}), ModelError);
}

TEST_CASE("A completion has the biases of its logits, also behind draft tokens") {
  TextGenerator generator = options_generator();
  GenerateOptions options = {.max_new_tokens = 8, .ignore_end = true};
  const std::vector<uint32_t> usual = generator.generate(kOptionsPrompt, options).ids;
  options.logit_bias = {{77, -5.f}, {77, 100.f}};  // the last one counts
  CHECK(generator.generate(kOptionsPrompt, options).ids == std::vector<uint32_t>(8, 77));
  options.prompt_lookup = 2;
  const Generation drafted = generator.generate(kOptionsPrompt, options);
  CHECK(drafted.ids == std::vector<uint32_t>(8, 77));
  CHECK(drafted.accepted_tokens > 0);
  options.prompt_lookup = 0;
  options.logit_bias = {{usual[0], -kInfinity}};
  const std::vector<uint32_t> without = generator.generate(kOptionsPrompt, options).ids;
  CHECK(std::ranges::count(without, usual[0]) == 0);
  // Biases belong to one completion.
  options.logit_bias.clear();
  CHECK(generator.generate(kOptionsPrompt, options).ids == usual);
  const auto refused = [&](std::vector<std::pair<uint32_t, float>> biases) {
    options.logit_bias = std::move(biases);
    CHECK_THROWS_AS(generator.generate(kOptionsPrompt, options), SettingError);
  };
  refused({{generator.vocabulary(), 1.f}});
  refused({{1, kInfinity}});
  refused({{1, std::nanf("")}});
  refused(std::vector<std::pair<uint32_t, float>>(kMostLogitBiases + 1, {1, 1.f}));
}

TEST_CASE("Log probabilities of a completion are those of its scores") {
  TextGenerator generator = options_generator(KeyValueStorage::kF32);
  GenerateOptions options = {.sampling = Sampling{.temperature = 1.3f, .seed = 4},
                             .max_new_tokens = 10,
                             .ignore_end = true,
                             .logit_bias = {{50, 3.f}},
                             .log_probabilities = 3};
  std::vector<float> told;
  std::string pieces, shown;
  bool in_order = true;
  options.on_token = [&](const BatchToken& token) {
    in_order = in_order && pieces == shown;
    pieces += token.piece;
    told.push_back(token.log_probability.value());
    CHECK(token.likeliest.size() == 3);
  };
  options.on_text = [&](std::string_view piece) { shown += piece; };
  const Generation drawn = generator.generate(kOptionsPrompt, options);
  check_probabilities(generator, drawn, 3);
  CHECK(in_order);
  CHECK(shown == drawn.text);
  REQUIRE(told.size() == drawn.ids.size());
  for (size_t i = 0; i < told.size(); ++i) CHECK(told[i] == drawn.log_probabilities[i].chosen);

  options = {.max_new_tokens = 20, .ignore_end = true, .log_probabilities = 1, .prompt_lookup = 2};
  const Generation drafted = generator.generate("The red hammer, the red hammer, the red", options);
  CHECK(drafted.draft_tokens > 0);
  check_probabilities(generator, drafted, 1);

  options.prompt_lookup = 0;
  options.log_probabilities = 0;
  const std::string prompts[] = {kOptionsPrompt, "An old house"};
  for (const Generation& found : generator.generate_all(prompts, options))
    check_probabilities(generator, found, 0);
  options.log_probabilities = kMostLikeliest + 1;
  CHECK_THROWS_AS(generator.generate(kOptionsPrompt, options), SettingError);
  options.log_probabilities.reset();
  CHECK(generator.generate(kOptionsPrompt, options).log_probabilities.empty());
}

TEST_CASE("Completions of one seed differ by their streams") {
  TextGenerator generator = options_generator(),
                several = options_generator(KeyValueStorage::kF16, 2);
  GenerateOptions options = {.sampling = Sampling{.temperature = 1.5f, .seed = 3},
                             .max_new_tokens = 12,
                             .ignore_end = true};
  std::vector<std::vector<uint32_t>> drawn;
  for (uint32_t stream = 0; stream < 4; ++stream) {
    options.stream = stream;
    drawn.push_back(generator.generate(kOptionsPrompt, options).ids);
  }
  for (size_t i = 1; i < drawn.size(); ++i) CHECK(drawn[i] != drawn[0]);
  options.stream = 2;
  CHECK(generator.generate(kOptionsPrompt, options).ids == drawn[2]);
  const std::string prompts[] = {kOptionsPrompt, kOptionsPrompt};
  const std::vector<Generation> together = several.generate_all(prompts, options);
  CHECK(together[0].ids == drawn[2]);
  CHECK(together[1].ids == drawn[3]);
}

TEST_CASE("A task has ids, biases, streams and calls as generate() has them") {
  TextGenerator generator = options_generator(), other = options_generator();
  struct Calls {
    std::vector<uint32_t> ids;
    std::string pieces, text;
  };
  Calls whole, sliced;
  const auto told_to = [](GenerateOptions options, Calls& calls) {
    options.on_token = [&calls](const BatchToken& token) {
      CHECK(calls.pieces == calls.text);
      CHECK_FALSE(token.log_probability.has_value());
      calls.ids.push_back(token.id);
      calls.pieces += token.piece;
    };
    options.on_text = [&calls](std::string_view piece) { calls.text += piece; };
    return options;
  };
  GenerateOptions options = {.sampling = Sampling{.temperature = 1.5f, .seed = 3},
                             .stream = 5,
                             .max_new_tokens = 12,
                             .prompt_ids = generator.tokens(kOptionsPrompt),
                             .ignore_end = true,
                             .logit_bias = {{77, 2.f}, {78, -kInfinity}}};
  const Generation expected = generator.generate("", told_to(options, whole));
  GenerationTask task(other, "", told_to(options, sliced));
  finish(task);
  const Generation found = task.result();
  CHECK(found.ids == expected.ids);
  CHECK(found.prompt_ids == expected.prompt_ids);
  CHECK(found.text == expected.text);
  CHECK(sliced.ids == found.ids);
  CHECK(sliced.ids == whole.ids);
  CHECK(sliced.text == found.text);
  CHECK(sliced.pieces == whole.pieces);

  TextGenerator third = options_generator();
  options.log_probabilities = 0;
  CHECK_THROWS_WITH(GenerationTask(third, "", options), ContainsSubstring("log_probabilities"));
  options.log_probabilities.reset();
  options.prompt_ids.push_back(third.vocabulary());
  CHECK_THROWS_AS(GenerationTask(third, "", options), ModelError);
  options.prompt_ids.pop_back();
  const std::vector<PromptPart> rows = {{.text = "", .embeddings = {}, .tokens = 2}};
  CHECK_THROWS_WITH(GenerationTask(third, rows, options), ContainsSubstring("prompt_ids"));
}

TEST_CASE("A trimmed generator holds what it held when it was loaded, and goes on") {
  const std::shared_ptr<Device> device = shared_handle();
  TextGenerator generator = options_generator();
  const uint64_t loaded = device->memory().used();
  const GenerateOptions options = {.max_new_tokens = 8, .ignore_end = true};
  const std::vector<ScoreInput> inputs = {{.text = "the red hammer and the blue nails"}};
  const std::vector<uint32_t> ids = generator.generate(kOptionsPrompt, options).ids;
  const double sum = generator.score(inputs).texts[0].sum;
  CHECK(device->memory().used() > loaded);
  const uint64_t reserved = device->memory().reserved();
  const uint64_t freed = generator.trim();
  CHECK(device->memory().used() == loaded);
  CHECK(device->memory().reserved() == reserved - freed);
  CHECK(generator.generate(kOptionsPrompt, options).ids == ids);
  CHECK(generator.statistics().reused_tokens > 0);  // the cache stays
  CHECK(generator.score(inputs).texts[0].sum == sum);

  // A running task keeps its programs.
  TextGenerator other = options_generator();
  GenerationTask task(other, kOptionsPrompt, options);
  task.step(1);
  other.trim();
  finish(task);
  CHECK(task.result().ids == ids);

  BatchGenerator batch = batch_of(2);
  BatchRequest request;
  request.prompt = kOptionsPrompt;
  request.max_new_tokens = 12;
  request.ignore_end = true;
  Told whole, trimmed;
  submit(batch, request, whole);
  while (batch.step()) {
  }
  submit(batch, request, trimmed);
  while (batch.step()) batch.trim();
  CHECK(trimmed.ids == whole.ids);
  CHECK(trimmed.ids.size() == 12);
}

TEST_CASE("A generator describes its model") {
  TextGenerator generator = options_generator(KeyValueStorage::kF32, 2);
  const GeneratorDescription found = generator.describe();
  CHECK(found.family == "gemma3_text");
  CHECK(found.context == 96);
  CHECK(found.sequences == 2);
  CHECK(found.vocabulary == 420);
  CHECK(found.width == 72);
  CHECK(found.layers == 3);
  CHECK(found.heads == 4);
  CHECK(found.key_values == KeyValueStorage::kF32);
  CHECK_FALSE(found.chat_template);
  CHECK(std::ranges::count(found.end_ids, 1u) == 1);
  CHECK(found.adapters.empty());
  CHECK(found.default_sampling == generator.default_sampling());
  const GeneratorDescription batched = batch_of(3).describe();
  CHECK(batched.sequences == 3);
  CHECK(batched.key_values == KeyValueStorage::kF16);
  CHECK(batched.end_ids == found.end_ids);
  const auto seeing = open_model((data_dir() / "vision_language/llava").string());
  CHECK(TextGenerator(shared_handle(), seeing).describe().chat_template);
}
