// Translations for concurrent requests: each is the same as alone, bit for bit.
#include "mulciber/batch_translator.h"

#include <algorithm>
#include <optional>
#include <random>

#include "mulciber/error.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_marian.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> kBatchTexts = {
    "Why did the smith melt 42 crucibles?",
    "The red hammer strikes the anvil.",
    "Molten iron cools; the apprentice counts: 1, 2, 3 ...",
    "iron",
    "The anvil, the hammer and the forge.",
    "",
    "A hammer and a hammer and a hammer and a hammer and a hammer and a hammer and a hammer and a "
    "hammer and a hammer and a hammer."};

TranslationRequest some_translation(std::mt19937& random) {
  TranslationRequest request = {.text = kBatchTexts[random() % kBatchTexts.size()]};
  TranslateOptions& options = request.options;
  const uint32_t beams[] = {1, 4, 5};
  options.beams = beams[random() % 3];
  options.n_best = 1 + random() % *options.beams;
  if (random() % 2 == 0) options.max_new_tokens = 4 + random() % 20;
  if (random() % 4 == 0) options.banned_tokens = {static_cast<uint32_t>(5 + random() % 3)};
  return request;
}

std::optional<Translation> translated(BatchTranslator& batch, TranslationRequest request) {
  std::optional<Translation> made;
  request.on_end = [&](const Translation& ended) { made = ended; };
  batch.submit(std::move(request));
  while (batch.step()) {
  }
  return made;
}

}  // namespace

TEST_CASE("A translation does not depend on who else is translated") {
  Translator translator(shared_handle(), small_marian().string());
  std::mt19937 random(5);
  std::vector<TranslationRequest> requests;
  for (int i = 0; i < 40; ++i) requests.push_back(some_translation(random));
  BatchTranslator batch(translator, {.slots = 6});
  std::vector<std::optional<Translation>> told(requests.size());
  size_t most = 0;
  for (size_t next = 0; next < requests.size() || batch.running() + batch.waiting() > 0;) {
    while (next < requests.size() && random() % 4 != 0) {
      TranslationRequest request = requests[next];
      request.on_end = [&told, next](const Translation& ended) {
        CHECK_FALSE(told[next]);
        told[next] = ended;
      };
      batch.submit(std::move(request));
      ++next;
    }
    batch.step();
    most = std::max(most, batch.running());
  }
  while (batch.step()) {
  }
  CHECK(most > 6);  // the requests ran in more than one search
  BatchTranslator quiet(translator, {.slots = 6});
  for (size_t i = 0; i < requests.size(); ++i) {
    INFO("request " << i << ": " << requests[i].text);
    const std::optional<Translation> alone = translated(quiet, requests[i]);
    REQUIRE(told[i]);
    REQUIRE(alone);
    CHECK(told[i]->complete);
    CHECK(told[i]->text == alone->text);
    CHECK(told[i]->ids == alone->ids);
    CHECK(told[i]->score == alone->score);
    CHECK(told[i]->alternatives.size() == alone->alternatives.size());
    // Up to rounding the translator gives the same answer: its ids are equal.
    const Translation other = translator.translate(requests[i].text, requests[i].options);
    CHECK(told[i]->ids == other.ids);
  }
  const BatchTranslatorStatistics& statistics = batch.statistics();
  CHECK(statistics.requests == requests.size());
  CHECK(statistics.ended == requests.size());
  CHECK(statistics.refills > 0);
  CHECK(statistics.sequence_steps > statistics.steps);
  CHECK(statistics.needed_row_steps <= statistics.row_steps);
}

TEST_CASE("A translation that nobody wants any more leaves before the next step") {
  Translator translator(shared_handle(), small_marian().string());
  BatchTranslator batch(translator, {.slots = 2});
  std::vector<Translation> ended;
  const auto submit = [&](const std::string& text) {
    return batch.submit({.text = text,
                         .options = {.beams = 2, .max_new_tokens = 20},
                         .on_end = [&](const Translation& made) { ended.push_back(made); }});
  };
  const uint64_t first = submit(kBatchTexts[0]), second = submit(kBatchTexts[1]);
  const uint64_t third = submit(kBatchTexts[2]), fourth = submit(kBatchTexts[4]);
  batch.step();
  CHECK(batch.running() == 2);
  CHECK(batch.waiting() == 2);
  batch.cancel(first);
  batch.cancel(third);
  batch.step();
  REQUIRE(ended.size() == 2);
  CHECK_FALSE(ended[0].complete);
  CHECK_FALSE(ended[1].complete);
  // The request that waited has its slot now.
  CHECK(batch.running() == 2);
  CHECK(batch.waiting() == 0);
  while (batch.step()) {
  }
  REQUIRE(ended.size() == 4);
  std::vector<std::vector<uint32_t>> found, expected;
  for (const Translation& made : std::span(ended).last(2)) {
    CHECK(made.complete);
    found.push_back(made.ids);
  }
  for (const size_t text : {1, 4})
    expected.push_back(
        translator.translate(kBatchTexts[text], {.beams = 2, .max_new_tokens = 20}).ids);
  std::ranges::sort(found);
  std::ranges::sort(expected);
  CHECK(found == expected);
  batch.cancel(second);
  batch.cancel(fourth);
  CHECK_FALSE(batch.step());
  CHECK(batch.statistics().cancelled == 2);
  CHECK(batch.statistics().ended == 2);
}

TEST_CASE("A request that cannot be translated leaves nothing behind") {
  Translator translator(shared_handle(), small_marian().string());
  BatchTranslator batch(translator, {.slots = 2});
  std::string text;
  while (text.size() < 4000) text += "hammer ";
  CHECK_THAT(model_error([&] { batch.submit({.text = text}); }).value_or(""),
             ContainsSubstring("tokens"));
  CHECK_THAT(
      model_error([&] { batch.submit({.text = "iron", .options = {.beams = 99}}); }).value_or(""),
      ContainsSubstring("beams"));
  TranslateOptions masked;
  masked.head_masks.cross.assign(8, 1.0f);
  CHECK_THAT(model_error([&] { batch.submit({.text = "iron", .options = masked}); }).value_or(""),
             ContainsSubstring("cross head mask: has 8 factors, the model has 9 heads"));
  CHECK_FALSE(batch.step());
  CHECK(batch.statistics().requests == 0);
  CHECK_THROWS_AS(BatchTranslator(translator, {.slots = 0}), SettingError);
  const std::optional<Translation> empty = translated(batch, {.text = " "});
  REQUIRE(empty);
  CHECK(empty->complete);
  CHECK(empty->text.empty());
}
