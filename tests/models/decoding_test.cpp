// Settings of a search, its state, and which texts share a batch; no model needed.
#include "models/generation/decoding.h"

#include <numeric>

#include "checkpoints/tensor_values.h"
#include "models/core/batching.h"
#include "models/core/device_weights.h"
#include "tests/catch.h"
#include "tests/model_error.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

GenerationConfig generation_config() {
  GenerationConfig config;
  config.eos = {0};
  config.pad = 9;
  config.decoder_start = 9;
  config.bad_words_ids = {{9}};
  return config;
}

std::string settings_refusal(const GenerationConfig& config) {
  return model_error([&] { generation_settings(config, 64); }).value_or("");
}

std::string settings_refusal(const GenerationSettings& settings) {
  return model_error([&] { check_settings(settings, 10, 64); }).value_or("");
}

}  // namespace

TEST_CASE("Settings come from the model's files") {
  GenerationConfig from = generation_config();
  from.num_beams = 4;
  from.max_length = 25;
  from.forced_eos = 0;
  from.min_length = 5;
  from.no_repeat_ngram_size = 3;
  from.length_penalty = 0.5;
  GenerationSettings settings = generation_settings(from, 64);
  CHECK(settings.beams == 4);
  CHECK(settings.max_new_tokens == 24);
  CHECK(settings.ends == std::vector<uint32_t>{0});
  CHECK(settings.forced_eos == 0u);
  CHECK_FALSE(settings.forced_bos.has_value());
  CHECK(settings.start == 9);
  CHECK(settings.banned == std::vector<uint32_t>{9});
  CHECK(settings.length_penalty == 0.5f);

  CHECK(settings.min_length == 5);
  CHECK(settings.no_repeat_ngram == 3);
  from.forced_bos = 4;
  CHECK(generation_settings(from, 64).forced_bos == 4u);

  from.max_new_tokens = 7;
  CHECK(generation_settings(from, 64).max_new_tokens == 7);
  from.max_new_tokens = 500;
  CHECK(generation_settings(from, 64).max_new_tokens == 64);
  from.max_new_tokens.reset();
  from.max_length.reset();
  CHECK(generation_settings(from, 64).max_new_tokens == 64);
}

TEST_CASE("Several ids end a text, and forbidden sequences have any length") {
  GenerationConfig from = generation_config();
  from.eos = {0, 3, 7};
  from.bad_words_ids = {{9}, {3}, {4, 5}, {3, 3}};
  GenerationSettings settings = generation_settings(from, 64);
  CHECK(settings.ends == std::vector<uint32_t>{0, 3, 7});
  // An id that ends a text is allowed alone, as in transformers.
  CHECK(settings.banned == std::vector<uint32_t>{9});
  CHECK(settings.banned_words == std::vector<std::vector<uint32_t>>{{4, 5}, {3, 3}});
  CHECK(settings_refusal(settings).empty());
  settings.banned_words.push_back({1, 10});
  CHECK_THAT(settings_refusal(settings), ContainsSubstring("id 10"));
  settings.banned_words.clear();
  settings.beams = 10;
  settings.ends.resize(55);
  CHECK_THAT(settings_refusal(settings), ContainsSubstring("55 ids that end a text"));
  CHECK_THAT(model_error([&] { ban(settings, {}); }).value_or(""),
             ContainsSubstring("without an id"));
}

TEST_CASE("What a search cannot do is refused by the key that asks for it") {
  GenerationConfig wrong = generation_config();
  wrong.bad_words_ids = {{3, 4}};
  wrong.renormalize_logits = true;
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("renormalize_logits"));
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("bad_words_ids"));
  wrong = generation_config();
  wrong.sampling.temperature = 1;
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("do_sample"));
  wrong = generation_config();
  wrong.sampling.repetition_penalty = 1.2f;
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("repetition_penalty"));
  CHECK(settings_refusal(generation_config()).empty());
}

TEST_CASE("Settings that contradict the model are refused") {
  const GenerationSettings good = generation_settings(generation_config(), 64);
  CHECK(settings_refusal(good).empty());
  GenerationSettings wrong = good;
  wrong.beams = 0;
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("beams"));
  wrong.beams = 33;
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("between 1 and 32"));
  wrong.beams = 11;
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("10 ids"));
  wrong = good;
  wrong.n_best = 2;
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("number of beams"));
  wrong = good;
  wrong.max_new_tokens = 65;
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("64 positions"));
  wrong = good;
  wrong.banned = {10};
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("id 10"));
  wrong = good;
  wrong.length_penalty = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(settings_refusal(wrong), ContainsSubstring("length penalty"));
}

TEST_CASE("Padding items of a batch are done before they start") {
  ControlLayout all(5);
  const BeamStateLayout layout = plan_beam_state(all, 3, 2, 16, {.banned = 8});
  const GenerationSettings settings = generation_settings(generation_config(), 15);
  ControlWords words(all.words());
  initialize_search(words, layout, settings, 2);
  CHECK(words.get(layout.search).unfinished == 2);
  CHECK(words.get(layout.items, 1).status == BEAM_SEARCHES);
  CHECK(words.get(layout.items, 2).status == BEAM_DONE);
  CHECK(words.get(layout.items, 1).last_position == settings.max_new_tokens);
  CHECK(words.get(layout.positions, 5) == 0);
  CHECK(finished_hypotheses(layout, words, 0).empty());
}

TEST_CASE("A greedy row has one candidate, others two for every beam, or one and all ends") {
  CHECK(candidates_per_row(1, 1, 100) == 1);
  CHECK(candidates_per_row(4, 1, 100) == 8);
  CHECK(candidates_per_row(4, 1, 5) == 5);
  CHECK(candidates_per_row(1, 3, 100) == 1);
  CHECK(candidates_per_row(4, 6, 100) == 10);
}

TEST_CASE("Batches hold every text once, like lengths together, within their bounds") {
  const std::vector<uint32_t> lengths = {3, 40, 7, 7, 1, 90, 12, 3, 3, 3};
  const BatchBounds bounds = {.tokens = 36, .sequences = 3, .limit = [](uint32_t length) {
                                return length == 7 ? 2u : 100u;
                              }};
  const auto batches = plan_batches(lengths, bounds);
  std::vector<int> seen(lengths.size(), 0);
  uint32_t longest_so_far = 1000;
  for (const std::vector<size_t>& batch : batches) {
    uint32_t longest = 0;
    for (size_t index : batch) {
      ++seen.at(index);
      longest = std::max(longest, lengths[index]);
      CHECK(lengths[index] <= longest_so_far);
    }
    longest_so_far = lengths[batch.back()];
    CHECK(batch.size() <= 3);
    if (longest == 7) CHECK(batch.size() <= 2);
    // A text too long for the bounds gets a batch of its own.
    CHECK((batch.size() == 1 || batch.size() * longest <= 36));
  }
  CHECK(seen == std::vector<int>(lengths.size(), 1));
  CHECK(plan_batches({}, bounds).empty());
}

TEST_CASE("Half precision rounds to nearest even and keeps special values") {
  CHECK(float_to_half(1.0f) == 0x3c00);
  CHECK(float_to_half(-2.0f) == 0xc000);
  CHECK(float_to_half(65504.0f) == 0x7bff);
  CHECK(float_to_half(65519.0f) == 0x7bff);
  CHECK(float_to_half(65520.0f) == 0x7c00);
  CHECK(float_to_half(1.0f + 0x1p-11f) == 0x3c00);      // a tie, to even
  CHECK(float_to_half(1.0f + 3 * 0x1p-11f) == 0x3c02);  // a tie, to even
  CHECK(float_to_half(0x1p-24f) == 0x0001);
  CHECK(float_to_half(0x1p-25f) == 0x0000);
  CHECK(float_to_half(std::numeric_limits<float>::infinity()) == 0x7c00);
  CHECK((float_to_half(std::numeric_limits<float>::quiet_NaN()) & 0x7e00) == 0x7e00);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<uint16_t>(bits));
    if (value != value) continue;
    INFO("bits " << bits);
    REQUIRE(float_to_half(value) == bits);
  }
}
