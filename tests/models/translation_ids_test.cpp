// Sources and translations as token ids: what a text gives, its ids give.
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "mulciber/batch_translator.h"
#include "mulciber/embedding.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_marian.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> kIdTexts = {"The red hammer strikes the anvil.", "", "iron"};

std::vector<std::vector<uint32_t>> ids_of_texts(const Translator& translator) {
  std::vector<std::vector<uint32_t>> ids;
  for (const std::string& text : kIdTexts) ids.push_back(translator.token_ids(text));
  return ids;
}

void check_same_translation(const Translation& found, const Translation& expected) {
  CHECK(found.complete);
  CHECK(found.text == expected.text);
  CHECK(found.score == expected.score);
  CHECK(found.ids == expected.ids);
  CHECK(found.tokens == expected.tokens);
  CHECK(found.source_ids == expected.source_ids);
  CHECK(found.source_tokens == expected.source_tokens);
}

}  // namespace

TEST_CASE("Ids of sources have the translations of their texts") {
  Translator translator(shared_handle(), small_marian().string());
  const TranslateOptions options = {.beams = 3};
  const std::vector<std::vector<uint32_t>> ids = ids_of_texts(translator);
  CHECK(ids[1].empty());
  const std::vector<Translation> expected = translator.translate(kIdTexts, options),
                                 found = translator.translate_ids(ids, options);
  REQUIRE(found.size() == kIdTexts.size());
  for (size_t i = 0; i < found.size(); ++i) check_same_translation(found[i], expected[i]);
  CHECK(translator.statistics().source_tokens == ids[0].size() + ids[2].size());

  TranslationTask task(translator, ids[0], options), twin(translator, kIdTexts[0], options);
  for (TranslationTask* one : {&task, &twin}) {
    while (!one->done()) {
      one->step(5000);
      one->wait();
    }
  }
  check_same_translation(task.result(), twin.result());

  BatchTranslator batch(translator, {.slots = 2});
  std::vector<Translation> ended;
  const auto submit = [&](TranslationRequest request) {
    request.options = options;
    request.on_end = [&](const Translation& made) { ended.push_back(made); };
    batch.submit(std::move(request));
    while (batch.step()) {
    }
  };
  submit({.text = kIdTexts[0]});
  submit({.source_ids = ids[0]});
  REQUIRE(ended.size() == 2);
  check_same_translation(ended[1], ended[0]);
}

TEST_CASE("Ids that a model cannot translate are refused with the number of their text") {
  Translator translator(shared_handle(), small_marian().string());
  const auto refused = [&](const std::vector<uint32_t>& ids) {
    const std::vector<std::vector<uint32_t>> sources = {{5, 0}, ids};
    return model_error([&] { translator.translate_ids(sources); }).value_or("no error");
  };
  CHECK_THAT(refused({5, 273, 0}), ContainsSubstring("text 2 of 2: has the token id 273, the "
                                                     "model's are below 273"));
  CHECK_THAT(refused({0xffffffff}), ContainsSubstring("has the token id 4294967295"));
  CHECK_THAT(refused(std::vector<uint32_t>(65, 5)),
             ContainsSubstring("text 2 of 2: has 65 tokens, the model takes at most 64"));
  CHECK(refused({5, 0}) == "no error");
  BatchTranslator batch(translator);
  CHECK_THAT(model_error([&] { batch.submit({.source_ids = {999}}); }).value_or("no error"),
             ContainsSubstring("text 1 of 1: has the token id 999"));
}

TEST_CASE("Tokens, ids and texts of both sides become one another") {
  const Translator translator(shared_handle(), small_marian().string());
  const std::vector<uint32_t> ids = translator.token_ids("the iron");
  const std::vector<std::string> tokens = translator.tokens_of(ids);
  REQUIRE(tokens.size() == ids.size());
  CHECK(tokens.front() == "\u2581the");
  CHECK(tokens.back() == "</s>");
  CHECK(translator.ids_of(tokens) == ids);
  CHECK(translator.text_of(ids, TranslationSide::kSource) == "the iron");
  // Marian's files have a <unk>; ids beyond the vocabulary have no piece.
  CHECK(translator.ids_of(std::vector<std::string>{"no piece of it"}) == std::vector<uint32_t>{1});
  CHECK(translator.tokens_of(std::vector<uint32_t>{1000, 0xffffffff}) ==
        std::vector<std::string>{"", ""});
  CHECK(translator.text_of(std::vector<uint32_t>{1000, 0xffffffff}).empty());

  Translator same(shared_handle(), small_marian().string());
  const Translation found = same.translate("the iron", {.max_new_tokens = 8});
  CHECK(translator.text_of(found.ids) == found.text);
  CHECK(translator.tokens_of(found.ids, TranslationSide::kTarget) == found.tokens);
  CHECK(translator.ids_of(found.tokens, TranslationSide::kTarget) == found.ids);
  const std::vector<uint32_t> target = translator.token_ids("iron", TranslationSide::kTarget);
  CHECK(target.back() == 0);
  CHECK(translator.languages().empty());
}

TEST_CASE("Language tokens are among the ids of a source, and are known by name") {
  TemporaryFolder folder;
  copy_multilingual(folder.path());
  Translator translator(shared_handle(), folder.path().string());
  CHECK(translator.languages() == std::vector<std::string>{"deu", "fra"});
  const TranslateOptions german = {.target_language = "deu"};
  const std::vector<uint32_t> ids =
      translator.token_ids(kIdTexts[0], TranslationSide::kSource, german);
  CHECK(ids.front() == 270);
  CHECK(translator.tokens_of(ids).front() == ">>deu<<");
  check_same_translation(translator.translate_ids({&ids, 1}).front(),
                         translator.translate(kIdTexts[0], german));
  CHECK_THAT(model_error([&] {
               translator.translate_ids({&ids, 1}, german);
             }).value_or("no error"),
             ContainsSubstring("put them among the ids"));
  CHECK_THAT(model_error([&] {
               translator.translate("iron", {.target_language = "tlh"});
             }).value_or("no error"),
             ContainsSubstring("it has: deu, fra"));
}

TEST_CASE("Scores of ids are those of texts, with a log probability for each token") {
  Translator translator(shared_handle(), small_marian().string());
  const std::vector<std::string> targets = {"iron", "iron", "the anvil and the forge"};
  const std::vector<TranslationScore> expected = translator.score(kIdTexts, targets);
  std::vector<std::vector<uint32_t>> target_ids;
  for (const std::string& target : targets)
    target_ids.push_back(translator.token_ids(target, TranslationSide::kTarget));
  const std::vector<TranslationScore> found =
      translator.score_ids(ids_of_texts(translator), target_ids);
  REQUIRE(found.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    INFO(targets[i]);
    CHECK(found[i].log_probability == expected[i].log_probability);
    CHECK(found[i].tokens == expected[i].tokens);
    CHECK(found[i].token_log_probabilities == expected[i].token_log_probabilities);
    if (i == 1) continue;  // a source without tokens
    CHECK(found[i].ids == target_ids[i]);
    const std::vector<double>& tokens = found[i].token_log_probabilities;
    REQUIRE(tokens.size() == target_ids[i].size());
    CHECK(std::accumulate(tokens.begin(), tokens.end(), 0.0) == found[i].log_probability);
    for (const double token : tokens) CHECK(token < 0);
  }
  CHECK(found[1].tokens == 0);
  CHECK(found[1].ids.empty());
  // The first token's probability does not depend on those behind it.
  const std::vector<uint32_t> first = {target_ids[2].front()};
  const std::vector<uint32_t> source = translator.token_ids(kIdTexts[2]);
  const TranslationScore alone = translator.score_ids({&source, 1}, {&first, 1}).front();
  CHECK(std::abs(alone.log_probability - found[2].token_log_probabilities.front()) < 1e-4);
  const std::vector<uint32_t> none;
  CHECK_THAT(model_error([&] {
               translator.score_ids({&source, 1}, {&none, 1});
             }).value_or("no error"),
             ContainsSubstring("has 0 tokens"));
}
