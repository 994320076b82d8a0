// Translation of texts with the small Marian model: batches, steps, limits, maps, scores, memory.
#include "mulciber/translator.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>

#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_marian.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

Translator small_translator() { return Translator(shared_handle(), small_marian().string()); }

const std::vector<std::string> kTexts = {"Why did the smith melt 42 crucibles?",
                                         "The red hammer strikes the anvil.",
                                         "Molten iron cools; the apprentice counts: 1, 2, 3 ...",
                                         "iron", "The anvil, the hammer and the forge."};

struct CounterValues {
  uint64_t allocations, command_buffers, descriptor_writes, pipelines, submissions, cpu_waits;
};

CounterValues counters_now() {
  const Counters& counters = shared_device().counters();
  return {counters.allocations, counters.command_buffers, counters.descriptor_writes,
          counters.pipelines,   counters.submissions,     counters.cpu_waits};
}

}  // namespace

TEST_CASE("A batch of unequal lengths gives what each text gives alone") {
  Translator translator = small_translator();
  const uint32_t beams = GENERATE(1u, 3u);
  const TranslateOptions options = {.beams = beams, .n_best = beams};
  const std::vector<Translation> together = translator.translate(kTexts, options);
  REQUIRE(together.size() == kTexts.size());
  for (size_t i = 0; i < kTexts.size(); ++i) {
    INFO(kTexts[i]);
    const Translation alone = translator.translate(kTexts[i], options);
    CHECK(together[i].complete);
    CHECK(together[i].ids == alone.ids);
    CHECK(together[i].text == alone.text);
    CHECK(std::abs(together[i].score - alone.score) < 1e-4);
    REQUIRE(together[i].alternatives.size() == beams);
    for (size_t n = 1; n < beams; ++n) {
      CHECK(together[i].alternatives[n - 1].score >= together[i].alternatives[n].score);
      CHECK(together[i].alternatives[n - 1].ids != together[i].alternatives[n].ids);
    }
  }
  CHECK(translator.statistics().texts == 1);
}

TEST_CASE("Small batches give what one batch gives, in the order of the texts") {
  Translator translator = small_translator();
  const std::vector<Translation> one = translator.translate(kTexts);
  CHECK(translator.statistics().batches == 1);
  const uint64_t steps = translator.statistics().decoder_steps;
  size_t calls = 0, last = 0;
  const std::vector<Translation> many = translator.translate(
      kTexts,
      {.batch_tokens = 40, .batch_sentences = 2, .progress = [&](size_t done, size_t total) {
         ++calls;
         CHECK(done > last);
         CHECK(total == kTexts.size());
         last = done;
       }});
  CHECK(translator.statistics().decoder_steps > steps);
  CHECK(calls == kTexts.size());
  CHECK(last == kTexts.size());
  for (size_t i = 0; i < kTexts.size(); ++i) CHECK(one[i].ids == many[i].ids);
}

TEST_CASE("A decode step allocates, records and writes nothing, and waits once") {
  Translator translator = small_translator();
  const uint32_t beams = GENERATE(1u, 4u);
  // No text ends within these limits, so the number of steps is the one asked for.
  const auto run = [&](uint32_t steps) {
    translator.translate(kTexts[0], {.beams = beams, .max_new_tokens = steps});
    const CounterValues before = counters_now();
    translator.translate(kTexts[0], {.beams = beams, .max_new_tokens = steps});
    const CounterValues after = counters_now();
    CHECK(after.command_buffers == before.command_buffers);
    CHECK(after.descriptor_writes == before.descriptor_writes);
    CHECK(after.pipelines == before.pipelines);
    const uint64_t done = translator.statistics().decoder_steps;
    return std::pair(done, CounterValues{after.allocations - before.allocations, 0, 0, 0,
                                         after.submissions - before.submissions,
                                         after.cpu_waits - before.cpu_waits});
  };
  const auto [few_steps, few] = run(3);
  const auto [many_steps, many] = run(14);
  REQUIRE(many_steps > few_steps);
  CHECK(many.allocations == few.allocations);
  // There are three decoder layers but one wait per step: the CPU waits for tokens, not for layers.
  CHECK(many.cpu_waits - few.cpu_waits <= many_steps - few_steps);
}

TEST_CASE("Length limit, banned ids and head masks need no new recording") {
  Translator translator = small_translator();
  const Translation free = translator.translate(kTexts[0], {.max_new_tokens = 12});
  REQUIRE(free.ids.size() > 2);
  // Another length has programs of its own.
  translator.translate(kTexts[1], {.max_new_tokens = 12});
  const CounterValues before = counters_now();
  const Translation shorter = translator.translate(kTexts[0], {.max_new_tokens = 9});
  CHECK(shorter.ids.size() <= 9);
  CHECK(shorter.ids.back() == 0);  // forced by the configuration

  const uint32_t unwanted = free.ids.front();
  const Translation banned =
      translator.translate(kTexts[0], {.max_new_tokens = 12, .banned_tokens = {unwanted}});
  CHECK(std::count(banned.ids.begin(), banned.ids.end(), unwanted) == 0);

  HeadMasks ones = {.encoder = std::vector<float>(2 * 3, 1.0f),
                    .decoder = std::vector<float>(3 * 3, 1.0f),
                    .cross = std::vector<float>(3 * 3, 1.0f)};
  const Translation same =
      translator.translate(kTexts[0], {.max_new_tokens = 12, .head_masks = ones});
  CHECK(same.ids == free.ids);
  CHECK(same.score == free.score);
  std::fill(ones.cross.begin(), ones.cross.end(), 0.0f);
  const Translation blind =
      translator.translate(kTexts[0], {.max_new_tokens = 12, .head_masks = ones});
  CHECK(blind.score != free.score);
  // Without cross-attention the source makes no difference.
  CHECK(translator.translate(kTexts[1], {.max_new_tokens = 12, .head_masks = ones}).ids ==
        blind.ids);
  CHECK(counters_now().command_buffers == before.command_buffers);

  ones.cross.pop_back();
  CHECK_THAT(
      model_error([&] { translator.translate(kTexts[0], {.head_masks = ones}); }).value_or(""),
      ContainsSubstring("8 factors"));
}

TEST_CASE("Attention maps are probabilities over the tokens") {
  Translator translator = small_translator();
  const Translation result =
      translator.translate(kTexts[1], {.beams = 2, .max_new_tokens = 10, .attention = true});
  REQUIRE(result.attention);
  const AttentionMaps& maps = *result.attention;
  const size_t source = result.source_ids.size(), target = result.ids.size();
  CHECK(maps.source_length == source);
  CHECK(maps.target_length == target);
  CHECK(maps.encoder_layers == 2);
  CHECK(maps.decoder_layers == 3);
  CHECK(maps.encoder_heads == 3);
  REQUIRE(maps.encoder.size() == 2 * 3 * source * source);
  REQUIRE(maps.decoder.size() == 3 * 3 * target * target);
  REQUIRE(maps.cross.size() == 3 * 3 * target * source);
  const auto check_rows = [](const std::vector<float>& map, size_t keys) {
    for (size_t row = 0; row < map.size(); row += keys) {
      double sum = 0;
      for (size_t key = 0; key < keys; ++key) sum += map[row + key];
      REQUIRE(std::abs(sum - 1) < 1e-5);
    }
  };
  check_rows(maps.encoder, source);
  check_rows(maps.decoder, target);
  check_rows(maps.cross, source);
  // No token sees a later one.
  CHECK(maps.decoder[1] == 0);
  CHECK(result.tokens.size() == result.ids.size());
  CHECK(result.source_tokens.size() == source);
}

TEST_CASE("Empty texts need no device, texts too long are refused") {
  Translator translator = small_translator();
  const uint64_t submissions = counters_now().submissions;
  const std::vector<std::string> empty = {"", "  \t "};
  for (const Translation& result : translator.translate(empty)) {
    CHECK(result.complete);
    CHECK(result.text.empty());
    CHECK(result.ids.empty());
  }
  CHECK(counters_now().submissions == submissions);
  CHECK(translator.translate(std::vector<std::string>()).empty());

  std::string longest;
  for (int i = 0; i < 200; ++i) longest += "hammer ";
  const std::string message = model_error([&] { translator.translate(longest); }).value_or("");
  CHECK_THAT(message, ContainsSubstring("tokens, the model takes at most 64"));
  CHECK_THAT(message, ContainsSubstring("text 1 of 1"));
  // The translator works as before.
  CHECK_FALSE(translator.translate(kTexts[3]).ids.empty());
}

TEST_CASE("A cancelled translation returns what is complete") {
  Translator translator = small_translator();
  std::atomic<bool> cancel{false};
  const std::vector<Translation> results =
      translator.translate(kTexts, {.batch_sentences = 2,
                                    .progress = [&](size_t, size_t) { cancel = true; },
                                    .cancel = &cancel});
  size_t complete = 0;
  for (const Translation& result : results) complete += result.complete;
  CHECK(complete > 0);
  CHECK(complete < kTexts.size());
  CHECK_FALSE(translator.translate(kTexts[0]).ids.empty());
}

TEST_CASE("A given text scores the same in any batch composition") {
  Translator translator = small_translator();
  const std::vector<std::string> texts = {kTexts[0], "", kTexts[3]};
  const std::vector<std::string> targets = {kTexts[1], "iron", kTexts[0]};
  const std::vector<TranslationScore> together = translator.score(texts, targets);
  CHECK(together[1].tokens == 0);
  CHECK(std::abs(together[2].log_probability -
                 translator.score(std::span(texts).last(1), std::span(targets).last(1))[0]
                     .log_probability) < 1e-4 * std::abs(together[2].log_probability));
  CHECK_THROWS_AS(translator.score(texts, std::span(targets).first(2)), ModelError);
}

TEST_CASE("Renormalized scores are log probabilities over the ids that are left") {
  TemporaryFolder folder;
  copy_model(folder.path(), [](Json&) {});
  Json generation = read_json(folder.path() / "generation_config.json");
  generation["renormalize_logits"] = true;
  fs::permissions(folder.path() / "generation_config.json", fs::perms::owner_all);
  write_file(folder.path() / "generation_config.json", generation.dump());
  Translator plain = small_translator();
  Translator renormalized(shared_handle(), folder.path().string());
  // Banning the best first id divides its share of the probability among the others, where logits
  // are renormalized.
  const TranslateOptions one = {.max_new_tokens = 2};
  const uint32_t best = plain.translate(kTexts[0], one).ids.front();
  const float p = std::exp(2 * plain.translate(kTexts[0], one).score);
  const TranslateOptions without = {.max_new_tokens = 2, .banned_tokens = {best}};
  const Translation second = plain.translate(kTexts[0], without);
  const Translation share = renormalized.translate(kTexts[0], without);
  CHECK(second.ids == share.ids);
  // There are two ids, the second one forced: the score is half the first one's log probability.
  const float q = std::exp(2 * second.score), r = std::exp(2 * share.score);
  const float banned_by_config = 1 - q / r - p;  // the share of the ids that the model itself bans
  CHECK(banned_by_config > -1e-5f);
  CHECK(banned_by_config < 0.5f);
  CHECK(r > q);
}

TEST_CASE("A translator tells how far loading it is") {
  std::vector<std::pair<uint64_t, uint64_t>> calls;
  LoadOptions options;
  options.on_progress = [&](uint64_t done, uint64_t total) { calls.emplace_back(done, total); };
  const Translator translator(shared_handle(), small_marian().string(), options);
  REQUIRE(calls.size() > 1);
  CHECK(calls.back().first == calls.back().second);
  CHECK(calls.back().second <= translator.statistics().weight_bytes);
}

TEST_CASE("Predicted device memory holds what is taken") {
  const uint64_t before = shared_device().memory().used();
  Translator translator = small_translator();
  translator.translate(kTexts, {.beams = 4});
  const uint64_t taken = shared_device().memory().used() - before;
  CHECK(taken > 0);
  INFO("taken " << taken);
  CHECK(translator.statistics().predicted_device_bytes >= taken * 3 / 4);
  CHECK(translator.statistics().predicted_device_bytes <= taken * 2);
}
