// Texts that share a model: their slots, their ends, probabilities and biases, and errors.
#include "mulciber/batch_generator.h"

#include <algorithm>
#include <cmath>
#include <list>

#include "mulciber/error.h"
#include "tests/batch_requests.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("An answer is that of a generator with one text") {
  TextGenerator generator(shared_handle(), small_model(), {.context = 96});
  for (const uint32_t sequences : {1u, 4u}) {
    BatchGenerator batch = batch_of(sequences);
    CHECK(batch.context() == 96);
    CHECK(batch.vocabulary() == generator.vocabulary());
    CHECK(batch.family() == generator.family());
    for (const float temperature : {0.f, 1.2f}) {
      const Sampling sampling = {.temperature = temperature, .seed = 5};
      const Generation expected = generator.generate("The red hammer and the",
                                                     {.sampling = sampling, .max_new_tokens = 16});
      BatchRequest request;
      request.prompt = "The red hammer and the";
      request.sampling = sampling;
      request.max_new_tokens = 16;
      Told told;
      submit(batch, request, told);
      while (batch.step()) {
      }
      REQUIRE(told.end);
      CHECK(told.ids == expected.ids);
      CHECK(told.end->ids == expected.ids);
      CHECK(told.end->prompt_ids == expected.prompt_ids);
      CHECK(told.end->end == expected.end);
      CHECK(told.text == expected.text);
      CHECK(told.end->text == expected.text);
      // The prompt is given as token ids instead of text.
      request.prompt.clear();
      request.prompt_ids = batch.tokens("The red hammer and the");
      Told by_ids;
      submit(batch, request, by_ids);
      while (batch.step()) {
      }
      CHECK(by_ids.ids == expected.ids);
      request.prompt_ids.push_back(batch.vocabulary());
      CHECK_THROWS_AS(submit(batch, request, by_ids), ModelError);
    }
  }
}

TEST_CASE("Short prompts pass long ones, which get on all the same, and texts grow meanwhile") {
  BatchGenerator batch = batch_of(3);
  std::mt19937 random(3);
  BatchRequest request;
  request.prompt = "A";
  request.ignore_end = true;
  Told grows, slow;
  submit(batch, request, grows);
  REQUIRE(batch.step());
  const size_t before = grows.ids.size();
  REQUIRE(before > 0);
  request.max_new_tokens = 1;
  request.prompt = words(random, 16);
  submit(batch, request, slow);
  std::list<Told> quick;
  const auto submit_quick = [&] {
    request.prompt = "B" + std::to_string(quick.size());
    submit(batch, request, quick.emplace_back());
  };
  submit_quick();
  size_t steps = 0;
  while (!slow.end) {
    REQUIRE(batch.step());
    ++steps;
    // Each step makes one token of the text under way, and one part of one prompt.
    CHECK(grows.ids.size() == before + steps);
    size_t parts = slow.prompt.size();
    for (const Told& one : quick) parts += one.prompt.size();
    CHECK(parts == steps);
    if (quick.back().end) submit_quick();
  }
  const size_t parts = slow.prompt.size();
  REQUIRE(parts > 2);
  for (size_t i = 0; i + 1 < parts; ++i) CHECK(slow.prompt[i] == 8 * (i + 1));
  // One part in four belongs to the prompt that has waited longest.
  CHECK(steps <= 4 * parts);
  CHECK(quick.size() > 2 * (parts - 1));
}

TEST_CASE("Requests beyond the slots wait in order, and are cancelled wherever they stand") {
  BatchGenerator batch = batch_of(1);
  BatchRequest request;
  request.prompt = "The red hammer";
  request.max_new_tokens = 6;
  request.ignore_end = true;
  Told told[4];
  uint64_t numbers[4];
  for (int i = 0; i < 4; ++i) numbers[i] = submit(batch, request, told[i]);
  CHECK(batch.waiting() == 4);
  REQUIRE(batch.step());
  CHECK(batch.running() == 1);
  CHECK(batch.waiting() == 3);
  batch.cancel(numbers[2]);
  CHECK_FALSE(told[2].end);
  REQUIRE(batch.step());
  REQUIRE(told[2].end);
  CHECK(told[2].end->end == GenerateEnd::kCancelled);
  CHECK(told[2].ids.empty());
  CHECK(batch.waiting() == 2);
  batch.cancel(numbers[0]);
  REQUIRE(batch.step());
  REQUIRE(told[0].end);
  CHECK(told[0].end->end == GenerateEnd::kCancelled);
  CHECK(told[0].end->ids == told[0].ids);
  CHECK(told[0].ids.size() < 6);
  while (batch.step()) CHECK((told[1].end || told[3].ids.empty()));
  CHECK(told[1].ids == told[3].ids);
  CHECK(told[1].ids.size() == 6);
  CHECK(std::equal(told[0].ids.begin(), told[0].ids.end(), told[1].ids.begin()));
  CHECK(batch.statistics().cancelled == 2);
  CHECK(batch.statistics().ended == 2);
  batch.cancel(numbers[1]);
  CHECK_FALSE(batch.step());
}

TEST_CASE("An answer ends with its limit, its stop text, the context, or the model's word") {
  BatchGenerator batch = batch_of(2, 32);
  BatchRequest request;
  request.prompt = "The red hammer";
  request.ignore_end = true;
  Told whole;
  submit(batch, request, whole);
  while (batch.step()) {
  }
  REQUIRE(whole.end);
  CHECK(whole.end->end == GenerateEnd::kContextFull);
  CHECK(whole.end->prompt_ids.size() + whole.ids.size() == 33);
  CHECK(whole.text == whole.end->text);

  REQUIRE(whole.text.size() > 8);
  request.stop = {whole.text.substr(whole.text.size() / 2, 3)};
  Told stopped;
  submit(batch, request, stopped);
  while (batch.step()) {
  }
  REQUIRE(stopped.end);
  CHECK(stopped.end->end == GenerateEnd::kStopText);
  CHECK(stopped.text == whole.text.substr(0, whole.text.find(request.stop[0])));
  CHECK(stopped.end->text == stopped.text);
}

TEST_CASE("Those that are called may submit and cancel") {
  const auto steps = GENERATE(0u, 1u, 4u);
  CAPTURE(steps);
  BatchGenerator batch = batch_of(2, 96, KeyValueStorage::kF16, steps);
  Told second;
  BatchRequest request;
  request.prompt = "The red hammer";
  request.max_new_tokens = 5;
  request.ignore_end = true;
  BatchRequest first = request;
  uint64_t number = 0;
  size_t seen = 0;
  GenerateEnd end = GenerateEnd::kTokenLimit;
  first.on_token = [&](const BatchToken&) {
    if (++seen == 2) {
      submit(batch, request, second);
      batch.cancel(number);
    }
  };
  first.on_end = [&](const Generation& generation, std::string_view) { end = generation.end; };
  number = batch.submit(first);
  while (batch.step()) {
  }
  CHECK(end == GenerateEnd::kCancelled);
  CHECK(seen == 2);
  CHECK(second.ids.size() == 5);
}

TEST_CASE("A sequence that is cancelled takes no token of a later step") {
  // Several steps in a submission, or draft tokens of which all are accepted: the model repeats
  // itself.
  const bool drafts = GENERATE(false, true);
  const auto last = GENERATE(range(size_t{17}, size_t{25}));
  CAPTURE(drafts, last);
  BatchGenerator batch = batch_of(8, 96, KeyValueStorage::kF16, drafts ? 1 : 8);
  BatchRequest request;
  request.prompt = "The red hammer, the red hammer, the red";
  request.max_new_tokens = 40;
  request.ignore_end = true;
  if (drafts) request.prompt_lookup = 1;
  // One of two sequences cancels the other, and then itself.
  for (const bool other_first : {false, true}) {
    std::vector<size_t> seen(2);
    std::vector<GenerateEnd> ends(2, GenerateEnd::kTokenLimit);
    std::vector<uint64_t> numbers(2);
    for (size_t i = 0; i < 2; ++i) {
      BatchRequest one = request;
      one.on_token = [&, i](const BatchToken&) {
        ++seen[i];
        if (i != (other_first ? 1u : 0u) || seen[i] != last) return;
        for (const uint64_t number : numbers) batch.cancel(number);
      };
      one.on_end = [&, i](const Generation& found, std::string_view) { ends[i] = found.end; };
      numbers[i] = batch.submit(one);
    }
    while (batch.step()) {
    }
    CHECK(ends == std::vector<GenerateEnd>(2, GenerateEnd::kCancelled));
    CHECK(seen[other_first ? 1 : 0] == last);
    CHECK((batch.statistics().accepted_tokens > 0) == drafts);
  }
}

TEST_CASE("What a batch cannot do is refused at once, and nothing is kept of it") {
  BatchGenerator batch = batch_of(2, 16);
  BatchRequest request;
  request.prompt = "The red hammer and the nails and the red hammer and the old house and the box";
  CHECK_THAT(model_error([&] { batch.submit(request); }).value_or(""),
             ContainsSubstring("leaves no room in a context of 16"));
  request.prompt = "";
  request.add_special = false;
  CHECK_THAT(model_error([&] { batch.submit(request); }).value_or(""),
             ContainsSubstring("has no tokens"));
  request.prompt = "The";
  request.sampling = Sampling{.top_p = -1};
  CHECK_THROWS_AS(batch.submit(request), SettingError);
  CHECK(batch.waiting() == 0);
  CHECK(batch.statistics().requests == 0);
  CHECK_FALSE(batch.step());
  CHECK(batch.text(batch.tokens("The red hammer")) == "The red hammer");
}

TEST_CASE("Probabilities are the model's own, before what sampling makes of them") {
  const auto model = open_decoder(small_decoder());
  // All numbers are in f32, as in the reference.
  BatchGenerator batch = batch_of(3, 96, KeyValueStorage::kF32);
  BatchRequest request;
  request.prompt = "The red hammer and the";
  request.max_new_tokens = 10;
  request.ignore_end = true;
  request.log_probabilities = 4;
  request.sampling = Sampling{.temperature = 1.3f, .repetition_penalty = 1.5f, .seed = 4};
  request.logit_bias = {{50, 3.f}, {60, -3.f}};
  Told told;
  submit(batch, request, told);
  while (batch.step()) {
  }
  REQUIRE(told.end);
  REQUIRE(told.bits.size() == 10);
  REQUIRE(told.likeliest.size() == 40);
  std::vector<uint32_t> ids = told.end->prompt_ids;
  ids.insert(ids.end(), told.ids.begin(), told.ids.end());
  const std::string wanted[] = {"logits"};
  const NamedArrays outputs = model->forward(
      {{"input_ids", {{1, ids.size()}, std::vector<double>(ids.begin(), ids.end())}}}, wanted);
  const NamedArray& logits = outputs.at("logits");
  const size_t vocabulary = logits.shape[2];
  for (size_t i = 0; i < told.ids.size(); ++i) {
    const auto row = std::span(logits.values)
                         .subspan((told.end->prompt_ids.size() + i - 1) * vocabulary, vocabulary);
    double sum = 0;
    for (const double logit : row) sum += std::exp(logit);
    const auto probability = [&](uint32_t id) { return row[id] - std::log(sum); };
    CHECK(std::fabs(std::bit_cast<float>(told.bits[i]) - probability(told.ids[i])) < 2e-5);
    for (size_t rank = 0; rank < 4; ++rank) {
      const TokenProbability& token = told.likeliest[4 * i + rank];
      CHECK(std::fabs(token.log_probability - probability(token.id)) < 2e-5);
      CHECK(std::ranges::count_if(row, [&](double logit) {
              return logit > row[token.id] + 2e-5;
            }) <= static_cast<std::ptrdiff_t>(rank));
      if (rank > 0)
        CHECK(token.log_probability <= told.likeliest[4 * i + rank - 1].log_probability);
    }
  }
}

TEST_CASE("Biases are added to the logits a choice is made from, of one request alone") {
  BatchGenerator batch = batch_of(3);
  BatchRequest plain;
  plain.prompt = "The red hammer and the";
  plain.max_new_tokens = 8;
  plain.ignore_end = true;
  plain.log_probabilities = 0;
  Told usual, forced, forbidden, little;
  BatchRequest request = plain;
  request.logit_bias = {{77, 100.f}};
  submit(batch, request, forced);
  submit(batch, plain, usual);
  while (batch.step()) {
  }
  CHECK(forced.ids == std::vector<uint32_t>(8, 77));
  CHECK(usual.ids == answer_alone(plain, 3).ids);
  // The usual first token is forbidden, so another one is chosen.
  request.logit_bias = {{usual.ids[0], -kInfinity}};
  submit(batch, request, forbidden);
  while (batch.step()) {
  }
  CHECK(std::ranges::count(forbidden.ids, usual.ids[0]) == 0);
  CHECK(forbidden.bits[0] != usual.bits[0]);
  // The bias leaves the second choice, whose logit is next.
  BatchRequest looks = plain;
  looks.log_probabilities = 2;
  Told two;
  submit(batch, looks, two);
  while (batch.step()) {
  }
  CHECK(forbidden.ids[0] == two.likeliest[1].id);
  // A bias just smaller than the gap between the two changes nothing; one just larger does.
  const float gap = two.likeliest[0].log_probability - two.likeliest[1].log_probability;
  for (const float share : {0.98f, 1.02f}) {
    Told pushed;
    request.logit_bias = {{two.likeliest[1].id, share * gap}};
    request.max_new_tokens = 1;
    submit(batch, request, pushed);
    while (batch.step()) {
    }
    CHECK(pushed.ids[0] == two.likeliest[share < 1 ? 0 : 1].id);
  }
  request.logit_bias = {{1u << 20, 1.f}};
  CHECK_THROWS_AS(batch.submit(request), SettingError);
  request.logit_bias = {{1, kInfinity}};
  CHECK_THROWS_AS(batch.submit(request), SettingError);
  request.logit_bias.assign(kMostLogitBiases + 1, {1, 1.f});
  CHECK_THROWS_AS(batch.submit(request), SettingError);
  request.logit_bias.clear();
  request.log_probabilities = kMostLikeliest + 1;
  CHECK_THROWS_AS(batch.submit(request), SettingError);
}

TEST_CASE("A batch takes the memory that it predicts, however many texts it has had") {
  const std::shared_ptr<Device> device = shared_handle();
  const uint64_t before = device->memory().used();
  BatchGenerator batch = batch_of(5);
  std::mt19937 random(11);
  std::vector<Told> told(20);
  for (Told& one : told) submit(batch, some_request(random), one);
  while (batch.step()) {
  }
  const BatchGeneratorStatistics& statistics = batch.statistics();
  CHECK(device->memory().used() - before <= statistics.predicted_device_bytes);
  CHECK(device->memory().used() - before > statistics.weight_bytes);
  CHECK(statistics.peak_device_bytes >= device->memory().used());
}

TEST_CASE("A prompt that is cancelled half way leaves what is computed of it to others") {
  BatchGenerator batch = batch_of(2);
  BatchRequest request;
  request.prompt = "The old house and the red box and the nails in it, the blue hammer";
  request.max_new_tokens = 4;
  request.ignore_end = true;
  request.log_probabilities = 0;
  const Told alone = answer_alone(request, 2);
  Told left, later;
  const uint64_t number = submit(batch, request, left);
  REQUIRE(batch.step());
  REQUIRE(batch.step());
  CHECK(left.prompt == std::vector<size_t>{8, 16});
  batch.cancel(number);
  REQUIRE(batch.step());
  REQUIRE(left.end);
  CHECK(left.end->end == GenerateEnd::kCancelled);
  submit(batch, request, later);
  while (batch.step()) {
  }
  CHECK(batch.statistics().reused_tokens == 16);
  CHECK(later.prompt.front() == 24);
  CHECK(later.ids == alone.ids);
  CHECK(later.bits == alone.bits);
}
