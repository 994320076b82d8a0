// Hidden states of texts, shorter vectors, ids of texts, and device memory that encoders free.
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "mulciber/embedding.h"
#include "mulciber/text_encoder.h"
#include "tests/catch.h"
#include "tests/changed_encoder.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> kStateTexts = {"Why did the smith melt 42 crucibles?", "", "iron",
                                              "The anvil, the hammer and the forge."};

/// Whether each column's mean over the tokens is that of the vector, within rounding.
void check_means(const TextStates& states, const TextVector& mean) {
  const size_t width = mean.values.size();
  REQUIRE(states.values.size() == states.tokens * width);
  for (size_t column = 0; column < width; ++column) {
    double sum = 0;
    for (uint32_t token = 0; token < states.tokens; ++token)
      sum += states.values[token * width + column];
    REQUIRE(std::abs(sum / states.tokens - mean.values[column]) < 1e-5);
  }
}

/// Embeds, frees what was kept, and embeds again.
template <typename Encoder, typename Compute>
void check_trim(Encoder& encoder, const Compute& compute) {
  const auto before = compute();
  const uint64_t used = shared_device().memory().used();
  const uint64_t reserved = shared_device().memory().reserved();
  const uint64_t freed = encoder.trim();
  CHECK(shared_device().memory().used() < used);
  CHECK(reserved - shared_device().memory().reserved() == freed);
  encoder.trim();  // nothing is left to free
  CHECK(compute() == before);
}

}  // namespace

TEST_CASE("Hidden states are those that vectors are pooled from") {
  TextEncoder encoder(shared_handle(), small_encoder());
  CHECK(encoder.state_width() == encoder.width());
  const std::vector<TextStates> states = encoder.states(kStateTexts);
  CHECK(encoder.statistics().texts == kStateTexts.size());
  const std::vector<TextVector> means = encoder.embed(kStateTexts),
                                first = encoder.embed(kStateTexts, {.pooling = Pooling::kFirst});
  REQUIRE(states.size() == kStateTexts.size());
  for (size_t i = 0; i < states.size(); ++i) {
    INFO(kStateTexts[i]);
    CHECK(states[i].complete);
    CHECK_FALSE(states[i].truncated);
    CHECK(states[i].tokens == means[i].tokens);
    check_means(states[i], means[i]);
    for (size_t column = 0; column < encoder.width(); ++column)
      REQUIRE(std::abs(states[i].values[column] - first[i].values[column]) < 2e-6);
  }
  EmbedOptions prompted;
  prompted.prompt = "say: ";
  check_means(encoder.states({&kStateTexts[0], 1}, prompted).front(),
              encoder.embed(kStateTexts[0], prompted));
  for (const EmbedOptions& options :
       {EmbedOptions{.pooling = Pooling::kMean}, EmbedOptions{.normalize = false},
        EmbedOptions{.dimensions = 4}})
    CHECK_THROWS_AS(encoder.states(kStateTexts, options), SettingError);
}

TEST_CASE("Hidden states of a decoder are those that its vectors are pooled from") {
  TextEncoder encoder(shared_handle(), small_decoder().string());
  const std::vector<std::string> texts = {"The red hammer"};
  const TextStates states = encoder.states(texts).front();
  CHECK(states.complete);
  check_means(states, encoder.embed(texts[0], {.pooling = Pooling::kMean, .normalize = false}));
}

TEST_CASE("A shorter vector has the first values, scaled again if it was normalized") {
  TextEncoder encoder(shared_handle(), small_encoder());
  const TextVector whole = encoder.embed(kStateTexts[0], {.normalize = false});
  EmbedOptions options = {.normalize = false};
  options.dimensions = 5;
  const TextVector plain = encoder.embed(kStateTexts[0], options);
  CHECK(plain.values == std::vector<float>(whole.values.begin(), whole.values.begin() + 5));
  options.normalize = true;
  const TextVector scaled = encoder.embed(kStateTexts[0], options);
  REQUIRE(scaled.values.size() == 5);
  double squares = 0, plain_squares = 0;
  for (size_t i = 0; i < 5; ++i) {
    squares += double{scaled.values[i]} * scaled.values[i];
    plain_squares += double{plain.values[i]} * plain.values[i];
  }
  CHECK(std::abs(squares - 1) < 1e-6);
  for (size_t i = 0; i < 5; ++i)
    CHECK(std::abs(scaled.values[i] - plain.values[i] / std::sqrt(plain_squares)) < 1e-6);
  options.dimensions = encoder.width();
  CHECK(encoder.embed(kStateTexts[0], options).values ==
        encoder.embed(kStateTexts[0], {.normalize = true}).values);
  options.dimensions = encoder.width() + 1;
  CHECK_THAT(model_error([&] { encoder.embed("iron", options); }).value_or("no error"),
             ContainsSubstring("dimensions: are 49 of 48"));
  CHECK_THROWS_WITH(EmbeddingTask(encoder, "iron", options), ContainsSubstring("dimensions"));
}

TEST_CASE("An encoder tells the ids of a text and the settings of its files") {
  const ChangedEncoder files;
  files.add_modules({{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", false}},
                    {"Normalize"});
  Json prompts;
  prompts["default_prompt_name"] = "query";
  prompts["prompts"]["query"] = "iron ";
  files.write("config_sentence_transformers.json", prompts);
  TextEncoder encoder(shared_handle(), files.path()), plain(shared_handle(), small_encoder());
  CHECK(encoder.pooling() == Pooling::kFirst);
  CHECK(encoder.normalizes());
  CHECK(encoder.default_prompt() == "query");
  CHECK(plain.pooling() == Pooling::kMean);
  CHECK_FALSE(plain.normalizes());
  CHECK(plain.default_prompt().empty());
  CHECK(encoder.token_ids("anvil") == plain.token_ids("iron anvil"));
  CHECK(plain.token_ids("anvil").size() == plain.embed("anvil").tokens);
  std::string text;
  for (int i = 0; i < 60; ++i) text += "iron ";
  CHECK(plain.token_ids(text).size() > plain.max_tokens());
  const std::vector<uint32_t> ids = plain.token_ids("anvil");
  CHECK(plain.embed_ids({&ids, 1}).front().values == plain.embed("anvil").values);
}

TEST_CASE("Encoders free what they keep for later texts, and work on") {
  TextEncoder encoder(shared_handle(), small_encoder());
  check_trim(encoder, [&] { return encoder.embed(kStateTexts[0]).values; });
  TextEncoder decoder(shared_handle(), small_decoder().string());
  check_trim(decoder, [&] { return decoder.embed(kStateTexts[0]).values; });
  Classifier classifier(shared_handle(), small_encoder());
  check_trim(classifier, [&] { return classifier.classify(kStateTexts[0]).logits; });
  const ChangedEncoder files;
  files.make_reader();
  PassageReader reader(shared_handle(), files.path());
  check_trim(reader, [&] { return reader.answer("Why melt?", kStateTexts[0]).front().text; });
}
