// BART, M2M-100 and T5: every reference model that is present, their configurations, and the
// generation rules that came with them.
#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "models/loading/open_files.h"
#include "models/loading/verify.h"
#include "models/translation/encoder_decoder_architecture.h"
#include "mulciber/translator.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_marian.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

void check_encoder_decoder(const fs::path& folder) {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  const OpenModel opened = open_files(fixtures_dir() / folder);
  const std::unique_ptr<Model> model = load_model(shared_device(), opened);
  const VerifyReport report = verify(*model, fixtures_dir() / folder / "expected.safetensors");
  for (const VerifyResult& result : report.results) {
    INFO(result.case_name << " " << result.tensor << ": error " << result.error << ", tolerance "
                          << result.tolerance << " " << result.detail);
    CHECK(result.status == VerifyResult::Status::kPass);
  }
  CHECK(report.count(VerifyResult::Status::kPass) == 22);
}

Json t5() {
  return Json::parse(R"({
    "model_type": "t5", "d_model": 48, "d_kv": 20, "d_ff": 90, "num_layers": 2, "num_heads": 3,
    "vocab_size": 205, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false,
    "eos_token_id": 1, "pad_token_id": 0, "decoder_start_token_id": 0})");
}

EncoderDecoderConfig read_t5(const Json& json) {
  return read_encoder_decoder_config(kT5, ConfigReader(json, "config.json"));
}

/// The message for T5's configuration with `key` set to `value`.
std::string t5_refusal(const char* key, const Json& value) {
  Json json = t5();
  json[key] = value;
  return model_error([&] { read_t5(json); }).value_or("");
}

/// The small Marian model's answer with changed rules.
std::vector<uint32_t> said_by_beams(uint32_t beams,
                                    const std::function<void(GenerationSettings&)>& change) {
  const Checkpoint checkpoint(small_marian());
  const auto model = load_encoder_decoder(shared_device(), checkpoint,
                                          read_encoder_decoder_config(checkpoint), {});
  GenerationSettings settings = generation_settings(model->generation_config(), 64);
  settings.beams = beams;
  settings.max_new_tokens = 24;
  settings.forced_eos.reset();
  change(settings);
  const std::vector<std::vector<uint32_t>> sources = {{5, 17, 40, 9, 0}};
  return model->generate({.sources = sources, .settings = settings}).items.at(0).at(0).ids;
}

bool repeats(const std::vector<uint32_t>& ids, size_t n) {
  for (size_t i = 0; i + n <= ids.size(); ++i)
    for (size_t j = i + 1; j + n <= ids.size(); ++j)
      if (std::equal(ids.begin() + static_cast<std::ptrdiff_t>(i),
                     ids.begin() + static_cast<std::ptrdiff_t>(i + n),
                     ids.begin() + static_cast<std::ptrdiff_t>(j)))
        return true;
  return false;
}

}  // namespace

TEST_CASE("BART meets its reference values") { check_encoder_decoder("models2/bart"); }
TEST_CASE("M2M-100 meets its reference values") { check_encoder_decoder("models2/m2m_100"); }
TEST_CASE("T5 meets its reference values") { check_encoder_decoder("models/t5"); }
TEST_CASE("T5 with gates meets its reference values") { check_encoder_decoder("models/t5_gated"); }

TEST_CASE("A T5 configuration is read") {
  const EncoderDecoderConfig config = read_t5(t5());
  CHECK(config.encoder.head_columns() == 60);
  CHECK(config.decoder.layers == 2);
  CHECK(config.feed_forward.gated);
  CHECK(config.feed_forward.activation == Activation::kGeluTanh);
  CHECK(config.attention.scale == 1.0f);
  CHECK(config.attention.relative_bias->buckets == 32);
  CHECK(config.attention.relative_bias->max_distance == 128);
  CHECK(config.output.multiplier == 1);
  // No key limits the length of texts, so the limit is the length that the model was trained on.
  CHECK(config.generation.max_new_tokens == 512);
  Json tied = t5();
  tied["tie_word_embeddings"] = true;
  tied["feed_forward_proj"] = "relu";
  CHECK(read_t5(tied).output.multiplier == 1 / std::sqrt(48.0f));
  CHECK_FALSE(read_t5(tied).feed_forward.gated);
}

TEST_CASE("A wrong T5 configuration is refused by key") {
  CHECK_THAT(t5_refusal("feed_forward_proj", "gated-abacus"),
             ContainsSubstring("feed_forward_proj") && ContainsSubstring("abacus"));
  CHECK_THAT(t5_refusal("relative_attention_num_buckets", 6), ContainsSubstring("multiple of 4"));
  CHECK_THAT(t5_refusal("relative_attention_max_distance", 16),
             ContainsSubstring("relative_attention_max_distance"));
  CHECK_THAT(t5_refusal("d_kv", 0), ContainsSubstring("d_kv"));
  CHECK_THAT(t5_refusal("eos_token_id", nullptr), ContainsSubstring("eos_token_id"));
  CHECK_THAT(t5_refusal("model_type", "bart"), ContainsSubstring("'bart', not 't5'"));
}

TEST_CASE("A search keeps the rules on length, repetition and the first token") {
  for (uint32_t beams : {1u, 4u}) {
    INFO(beams << " beams");
    const std::vector<uint32_t> plain = said_by_beams(beams, [](GenerationSettings&) {});
    CHECK(repeats(plain, 2));  // random weights repeat themselves
    for (uint32_t n : {1u, 2u, 3u}) {
      INFO("no " << n << "-gram twice");
      const std::vector<uint32_t> ids =
          said_by_beams(beams, [&](GenerationSettings& settings) { settings.no_repeat_ngram = n; });
      std::vector<uint32_t> all = {272};  // the start token counts
      all.insert(all.end(), ids.begin(), ids.end());
      CHECK_FALSE(repeats(all, n));
    }
    const std::vector<uint32_t> forced =
        said_by_beams(beams, [](GenerationSettings& settings) { settings.forced_bos = 33; });
    CHECK(forced.at(0) == 33);
    const std::vector<uint32_t> ended = said_by_beams(beams, [&](GenerationSettings& settings) {
      settings.ends = {plain.at(2)};  // occurs early
      settings.length_penalty = 0;
    });
    CHECK(ended.size() <= 3);
    const std::vector<uint32_t> longer = said_by_beams(beams, [&](GenerationSettings& settings) {
      settings.ends = {plain.at(2)};
      settings.length_penalty = 0;
      settings.min_length = 12;  // the start token counts
    });
    CHECK(longer.size() >= 12);
    CHECK(std::find(longer.begin(), longer.begin() + 11, plain.at(2)) == longer.begin() + 11);
  }
}

TEST_CASE("Languages are chosen by the tokens of a vocabulary") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  Translator translator(shared_handle(), (fixtures_dir() / "models2/m2m_100").string());
  const std::string text = "The red hammer strikes the anvil.";
  const Translation own = translator.translate(text);
  CHECK(own.source_ids.front() == 323);  // eng_Latn
  CHECK(own.ids.front() == 324);         // deu_Latn
  const Translation chosen =
      translator.translate(text, {.source_language = "fra_Latn", .target_language = "eng_Latn"});
  CHECK(chosen.source_ids.front() == 325);
  CHECK(std::equal(chosen.source_ids.begin() + 1, chosen.source_ids.end(),
                   own.source_ids.begin() + 1, own.source_ids.end()));
  CHECK(chosen.ids.front() == 323);
  CHECK(chosen.tokens.front() == "eng_Latn");
  CHECK_THAT(chosen.text, !ContainsSubstring("eng_Latn"));
  const auto refused = [&](const TranslateOptions& options) {
    return model_error([&] { translator.translate(text, options); }).value_or("");
  };
  CHECK_THAT(refused({.target_language = "ita_Latn"}),
             ContainsSubstring("'ita_Latn'") && ContainsSubstring("eng_Latn, deu_Latn, fra_Latn"));
  CHECK_THAT(refused({.source_language = "</s>"}), ContainsSubstring("'</s>'"));

  Translator one_pair(shared_handle(), small_marian().string());
  CHECK_THAT(model_error([&] { one_pair.translate(text, {.target_language = "de"}); }).value_or(""),
             ContainsSubstring("no token for a language"));
}

TEST_CASE("T5 and BART answer texts, M2M-100 translates alone") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  for (const auto& [folder, rewrites] :
       {std::pair("models/t5", true), {"models2/bart", true}, {"models2/m2m_100", false}}) {
    INFO(folder);
    const OpenModel opened = open_files(fixtures_dir() / folder);
    CHECK(opened.capabilities().has(Capability::kTranslate));
    CHECK(opened.capabilities().has(Capability::kRewriteText) == rewrites);
  }
}

TEST_CASE("Attention maps of encoder-decoders add up to one") {
  if (fixtures_dir().empty()) MULCIBER_SKIP("the reference models are not here");
  for (const char* folder : {"models/t5", "models2/bart", "models2/m2m_100"}) {
    INFO(folder);
    Translator translator(shared_handle(), (fixtures_dir() / folder).string());
    const Translation found = translator.translate("The anvil.", {.attention = true});
    const AttentionMaps& maps = found.attention.value();
    CHECK(maps.target_length == found.ids.size());
    for (const auto& [weights, columns] : {std::pair(&maps.encoder, maps.source_length),
                                           std::pair(&maps.decoder, maps.target_length),
                                           std::pair(&maps.cross, maps.source_length)}) {
      REQUIRE(!weights->empty());
      for (size_t row = 0; row < weights->size() / columns; ++row) {
        double sum = 0;
        for (uint32_t i = 0; i < columns; ++i) sum += (*weights)[row * columns + i];
        CHECK(std::abs(sum - 1) < 1e-5);
      }
    }
  }
}
