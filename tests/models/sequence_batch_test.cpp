// Sequences of a language model: together and alone, saved, sampled, in chunks, and step by step.
#include <algorithm>

#include "models/generation/decoder_model.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("Sequences of unequal lengths in one batch go as each would alone") {
  const auto model = open_decoder(small_decoder());
  const std::vector<std::vector<uint32_t>> prompts = {
      prompt_of(3, 1), prompt_of(41, 2), prompt_of(1, 3), {}, prompt_of(17, 4)};
  SequenceBatch batch(shared_device(), model->network(), {5, 96});
  const SequenceResult together = batch.generate({.prompts = prompts, .max_new_tokens = 20});
  for (size_t row = 0; row < prompts.size(); ++row) {
    INFO("row " << row);
    if (prompts[row].empty()) {
      CHECK(together.rows[row].ids.empty());
      CHECK(together.rows[row].end == SequenceEnd::kIdle);
      CHECK(batch.length(static_cast<uint32_t>(row)) == 0);
      continue;
    }
    CHECK(together.rows[row].ids == alone(*model, prompts[row], 20));
    CHECK(together.rows[row].end == SequenceEnd::kLimit);
    CHECK(batch.length(static_cast<uint32_t>(row)) == prompts[row].size() + 19);
  }
  // The rows continue from their lengths; one of them from an earlier position.
  std::vector<std::vector<uint32_t>> more(5);
  more[0] = {together.rows[0].ids.back(), 9, 10};
  more[4] = {77};
  batch.truncate(4, 17);
  const SequenceResult later = batch.generate({.prompts = more, .max_new_tokens = 6});
  std::vector<uint32_t> whole = prompts[0];
  whole.insert(whole.end(), together.rows[0].ids.begin(), together.rows[0].ids.end());
  whole.insert(whole.end(), {9, 10});
  CHECK(later.rows[0].ids == alone(*model, whole, 6));
  whole = prompts[4];
  whole.push_back(77);
  CHECK(later.rows[4].ids == alone(*model, whole, 6));
}

TEST_CASE("Rows whose prompts end passes earlier than others' go on where they stand") {
  const auto model = open_decoder(small_decoder());
  SequenceBatch batch(shared_device(), model->network(), {12, 96});  // in passes of 32 tokens
  std::vector<std::vector<uint32_t>> prompts(12);
  prompts[1] = prompt_of(3, 1);
  prompts[5] = prompt_of(70, 2);
  prompts[11] = prompt_of(33, 3);
  const SequenceResult together = batch.generate({.prompts = prompts, .max_new_tokens = 12});
  for (const size_t row : {1, 5, 11}) {
    INFO("row " << row);
    CHECK(together.rows[row].ids == alone(*model, prompts[row], 12));
    CHECK(batch.length(static_cast<uint32_t>(row)) == prompts[row].size() + 11);
  }
}

TEST_CASE("A row is saved, and goes on in another row and another batch") {
  const auto model = open_decoder(small_decoder());
  const std::vector<uint32_t> prompt = prompt_of(21, 11), expected = alone(*model, prompt, 12);
  std::vector<uint32_t> begin(prompt.begin(), prompt.end() - 1);
  SequenceBatch batch(shared_device(), model->network(), {3, 96});
  batch.generate({.prompts = {begin, {}, {9, 8, 7}}, .max_new_tokens = 0});
  batch.restore(1, batch.save(0));
  CHECK(batch.length(1) == 20);
  const SequenceResult forked =
      batch.generate({.prompts = {{prompt.back()}, {prompt.back()}, {}}, .max_new_tokens = 12});
  CHECK(forked.rows[0].ids == expected);
  CHECK(forked.rows[1].ids == expected);
  batch.truncate(1, 20);
  const SavedSequence saved = batch.save(1);
  SequenceBatch other(shared_device(), model->network(), {1, 40});
  other.restore(0, saved);
  CHECK(other.generate({.prompts = {{prompt.back()}}, .max_new_tokens = 12}).rows[0].ids ==
        expected);

  SequenceBatch small(shared_device(), model->network(), {1, 16});
  CHECK_THAT(model_error([&] { small.restore(0, saved); }).value_or(""),
             ContainsSubstring("holds 20 tokens, there is room for 16"));
}

TEST_CASE("The tokens are the same whatever the number of steps per submission") {
  const auto model = open_decoder(small_decoder());
  const std::vector<uint32_t> prompt = prompt_of(9, 5), expected = alone(*model, prompt, 40);
  REQUIRE(expected.size() == 40);
  // `end` is the first token from the middle on that did not occur before: it ends the sequence at
  // its first occurrence.
  size_t end = 15;
  while (end < 39 &&
         std::count(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(end),
                    expected[end]) > 0)
    ++end;
  for (uint32_t steps : {1u, 2u, 7u, 32u}) {
    INFO(steps << " steps per submission");
    SequenceBatch batch(shared_device(), model->network(), {1, 96});
    std::vector<uint32_t> told;
    SequenceRequest request = {.prompts = {prompt}, .max_new_tokens = 40};
    request.steps_per_submission = steps;
    request.on_token = [&](uint32_t, uint32_t id) { told.push_back(id); };
    CHECK(batch.generate(request).rows[0].ids == expected);
    CHECK(told == expected);
    batch.truncate(0, 0);
    request.stops = {expected[end]};
    const SequenceResult stopped = batch.generate(request);
    const auto first = std::find(expected.begin(), expected.end(), expected[end]);
    CHECK(stopped.rows[0].ids == std::vector<uint32_t>(expected.begin(), first + 1));
    CHECK(stopped.rows[0].end == SequenceEnd::kStop);
    CHECK(batch.length(0) == prompt.size() + static_cast<size_t>(first - expected.begin()));
  }
}

TEST_CASE("What is drawn depends on tokens, settings and seed alone") {
  const auto model = open_decoder(small_decoder());
  const std::vector<uint32_t> prompt = prompt_of(9, 5);
  const Sampling settings = {
      .temperature = 1.4f, .top_k = 60, .top_p = 0.97f, .repetition_penalty = 1.1f, .seed = 42};
  const auto draw = [&](const Sampling& s, uint32_t steps, std::vector<uint32_t> stops = {}) {
    SequenceBatch batch(shared_device(), model->network(), {1, 96});
    return batch.generate({.prompts = {prompt},
                           .max_new_tokens = 40,
                           .sampling = {s},
                           .stops = std::move(stops),
                           .steps_per_submission = steps});
  };
  const std::vector<uint32_t> expected = draw(settings, 1).rows[0].ids;
  REQUIRE(expected.size() == 40);
  CHECK(expected != alone(*model, prompt, 40));
  for (uint32_t steps : {2u, 7u, 32u}) {
    INFO(steps << " steps per submission");
    CHECK(draw(settings, steps).rows[0].ids == expected);
  }
  Sampling other = settings;
  other.seed = 43;
  CHECK(draw(other, 2).rows[0].ids != expected);
  CHECK(draw({.temperature = 0.5f, .top_k = 1, .seed = 9}, 2).rows[0].ids ==
        alone(*model, prompt, 40));

  // The device sees the stop itself: it draws nothing after it.
  const SequenceResult stopped = draw(settings, 32, {expected[20]});
  const auto first = std::find(expected.begin(), expected.end(), expected[20]);
  CHECK(stopped.rows[0].ids == std::vector<uint32_t>(expected.begin(), first + 1));
  CHECK(stopped.rows[0].end == SequenceEnd::kStop);

  // Rows run together, each with its own settings; a second call continues from the state that the
  // first one left.
  SequenceBatch batch(shared_device(), model->network(), {3, 96});
  const SequenceResult together = batch.generate({.prompts = {prompt_of(30, 8), {}, prompt},
                                                  .max_new_tokens = 25,
                                                  .sampling = {other, {}, settings}});
  CHECK(together.rows[2].ids == std::vector<uint32_t>(expected.begin(), expected.begin() + 25));
  const SequenceResult later = batch.generate(
      {.prompts = {{}, {}, {expected[24]}}, .max_new_tokens = 15, .sampling = {{}, {}, settings}});
  CHECK(later.rows[2].ids == std::vector<uint32_t>(expected.begin() + 25, expected.end()));
  CHECK(std::ranges::equal(batch.ids(2).first(prompt.size()), prompt));
}

TEST_CASE("A prompt is taken in by chunks, up to the last token of the context") {
  const auto model = open_decoder(small_decoder());
  const std::vector<uint32_t> prompt = prompt_of(93, 6);
  const std::vector<uint32_t> expected = alone(*model, prompt, 3);
  SequenceBatch batch(shared_device(), model->network(), {1, 96});
  for (size_t first = 0; first < prompt.size();) {
    const size_t count = std::min<size_t>(first % 11 + 1, prompt.size() - first);
    SequenceRequest request = {
        .prompts = {{prompt.begin() + static_cast<std::ptrdiff_t>(first),
                     prompt.begin() + static_cast<std::ptrdiff_t>(first + count)}}};
    first += count;
    request.max_new_tokens = first < prompt.size() ? 0 : 9;
    const SequenceResult result = batch.generate(request);
    if (first < prompt.size()) {
      CHECK(result.rows[0].ids.empty());
      continue;
    }
    // Three are fed into the last three positions; the fourth is known and needs none.
    REQUIRE(result.rows[0].ids.size() == 4);
    CHECK(std::equal(expected.begin(), expected.end(), result.rows[0].ids.begin()));
    CHECK(result.rows[0].end == SequenceEnd::kFull);
  }
  CHECK_THAT(
      model_error([&] { batch.generate({.prompts = {{5}}, .max_new_tokens = 1}); }).value_or(""),
      ContainsSubstring("97 tokens, there is room for 96"));
}
