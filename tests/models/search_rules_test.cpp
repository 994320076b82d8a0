// Rules of generation other than a single end id and single forbidden ids, against transformers'
// generate(): tests/data/search_rules.json, made by tools/fixtures/search_rules.py.
#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "models/translation/encoder_decoder_architecture.h"
#include "mulciber/translator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_marian.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
using Ids = std::vector<uint32_t>;

namespace {

Json reference_cases() {
  std::ifstream file(data_dir() / "search_rules.json");
  return Json::parse(file);
}

std::vector<Hypothesis> search(EncoderDecoderModel& model, const Json& rules) {
  GenerationConfig config = model.generation_config();
  config.num_beams = rules.at("beams").get<int32_t>();
  config.max_new_tokens = 20;
  config.eos = rules.at("eos_token_id").get<std::vector<int32_t>>();
  config.bad_words_ids = rules.at("bad_words_ids").get<std::vector<std::vector<int32_t>>>();
  config.min_length = rules.value("min_length", 0);
  config.no_repeat_ngram_size = rules.value("no_repeat_ngram_size", 0);
  const std::vector<Ids> sources = {rules.at("source").get<Ids>()};
  GenerationRequest request;
  request.sources = sources;
  request.settings = generation_settings(config, 64);
  request.settings.n_best = request.settings.beams;
  return model.generate(request).items.at(0);
}

bool holds(const Ids& text, const Ids& sequence) {
  return std::search(text.begin(), text.end(), sequence.begin(), sequence.end()) != text.end();
}

}  // namespace

TEST_CASE("Searches with several ends and forbidden sequences find what transformers finds") {
  const Checkpoint checkpoint(small_marian());
  const auto model = load_encoder_decoder(shared_device(), checkpoint,
                                          read_encoder_decoder_config(checkpoint), {});
  const Json cases = reference_cases();
  REQUIRE(cases.size() >= 40);
  size_t changed = 0;
  Json plain;
  for (const Json& rules : cases) {
    INFO(rules.at("name").get<std::string>() << " of " << rules.at("source").dump());
    const std::vector<Hypothesis> found = search(*model, rules);
    std::vector<Ids> texts;
    for (const Hypothesis& one : found) texts.push_back(one.ids);
    CHECK(texts == rules.at("texts").get<std::vector<Ids>>());
    for (size_t i = 0; i < found.size() && rules.contains("scores"); ++i)
      CHECK(std::abs(found[i].score - rules["scores"][i].get<double>()) < 1e-4);
    if (rules.at("name").get<std::string>().starts_with("plain")) plain = rules.at("texts");
    changed += rules.at("texts") != plain ? 1 : 0;
  }
  CHECK(changed > cases.size() / 2);  // the rules change answers
}

TEST_CASE("An application forbids sequences besides the model's own") {
  Translator translator({std::shared_ptr<Device>(), &shared_device()}, small_marian().string());
  const std::string text = "A dog runs.";
  const Ids plain = translator.translate(text, {.beams = 3, .max_new_tokens = 12}).ids;
  REQUIRE(plain.size() > 4);
  const Ids pair(plain.begin() + 1, plain.begin() + 3), three(plain.begin(), plain.begin() + 3);
  TranslateOptions options = {.beams = 3, .max_new_tokens = 12};
  options.banned_sequences = {pair};
  CHECK_FALSE(holds(translator.translate(text, options).ids, pair));
  options.banned_sequences = {three, {plain[0]}};  // a sequence of one id bans that id
  CHECK_FALSE(holds(translator.translate(text, options).ids, {plain[0]}));
  options.banned_sequences = {{1, 100000}};
  CHECK_THAT(model_error([&] { translator.translate(text, options); }).value_or(""),
             ContainsSubstring("id 100000"));
  options.banned_sequences = {{}};
  CHECK_THAT(model_error([&] { translator.translate(text, options); }).value_or(""),
             ContainsSubstring("without an id"));
}
