// Scores and tokens of translations in C, and what a translator is: they are those of C++.
#include <string>
#include <utility>
#include <vector>

#include "tests/c_translations.h"
#include "tests/catch.h"
#include "tests/small_marian.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> kScoredSources = {"The red hammer strikes the anvil.", "", "iron"};
const std::vector<std::string> kScoredTargets = {"iron", "iron", "the anvil and the forge"};
const char* const kScored[] = {kScoredSources[0].c_str(), kScoredSources[1].c_str(),
                               kScoredSources[2].c_str()};
const char* const kScoring[] = {kScoredTargets[0].c_str(), kScoredTargets[1].c_str(),
                                kScoredTargets[2].c_str()};

void check_scores(TranslatorTwins& twins, const MulciberTranslationScore* found,
                  const std::vector<TranslationScore>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(found[i].size == sizeof(found[i]));
    CHECK(found[i].log_probability == expected[i].log_probability);
    REQUIRE(found[i].id_count == expected[i].tokens);
    check_tokens(found[i].id_count, found[i].ids, found[i].tokens, expected[i].ids,
                 twins.twin.tokens_of(expected[i].ids, TranslationSide::kTarget));
    CHECK(std::vector(found[i].token_log_probabilities,
                      found[i].token_log_probabilities + found[i].id_count) ==
          expected[i].token_log_probabilities);
  }
}

/// Sequences that point into ids.
std::vector<MulciberIdSequence> c_sequences(const std::vector<std::vector<uint32_t>>& ids) {
  std::vector<MulciberIdSequence> sequences;
  for (const std::vector<uint32_t>& each : ids)
    sequences.push_back(
        {sizeof(MulciberIdSequence), static_cast<uint32_t>(each.size()), each.data()});
  return sequences;
}

}  // namespace

TEST_CASE("Scores of translations in C are those in C++, of texts and of ids") {
  TranslatorTwins twins(small_marian().string());
  MulciberContext* c = twins.c;
  MulciberResult* result = nullptr;
  const MulciberTranslationScore* found = nullptr;
  const auto score = [&](const MulciberTranslationScoreInfo* info, bool of_texts) {
    return mulciber_score_translations(c, twins.translator, 3, of_texts ? kScored : nullptr,
                                       of_texts ? kScoring : nullptr, info, &result, &found);
  };
  REQUIRE(score(nullptr, true) == MULCIBER_OK);
  check_scores(twins, found, twins.twin.score(kScoredSources, kScoredTargets));
  CHECK(found[1].id_count == 0);
  mulciber_destroy_result(result);

  HeadMasks factors;
  factors.cross = {1, 0, 1, 1, 0.5f, 1, 1, 1, 0};
  MulciberHeadMasks masks = {sizeof(masks)};
  masks.cross_count = 9;
  masks.cross = factors.cross.data();
  MulciberTranslationScoreInfo info = {sizeof(info)};
  info.head_masks = &masks;
  REQUIRE(score(&info, true) == MULCIBER_OK);
  check_scores(twins, found, twins.twin.score(kScoredSources, kScoredTargets, factors));
  mulciber_destroy_result(result);

  std::vector<std::vector<uint32_t>> source_ids, target_ids;
  for (const std::string& text : kScoredSources) source_ids.push_back(twins.twin.token_ids(text));
  for (const std::string& text : kScoredTargets)
    target_ids.push_back(twins.twin.token_ids(text, TranslationSide::kTarget));
  const std::vector<MulciberIdSequence> sources = c_sequences(source_ids),
                                        targets = c_sequences(target_ids);
  info = {sizeof(info)};
  info.source_ids = sources.data();
  CHECK(score(&info, false) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(twins.context.message(), ContainsSubstring("target_ids: is NULL"));
  info.target_ids = targets.data();
  REQUIRE(score(&info, false) == MULCIBER_OK);
  check_scores(twins, found, twins.twin.score_ids(source_ids, target_ids));
  mulciber_destroy_result(result);
  CHECK(score(&info, true) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(twins.context.message(), ContainsSubstring("sources: is given beside ids"));
  CHECK(result == nullptr);
  CHECK(found == nullptr);
  CHECK(score(nullptr, false) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(twins.context.message(), ContainsSubstring("sources: is NULL"));
  CHECK(mulciber_score_translations(c, nullptr, 3, kScored, kScoring, nullptr, &result, &found) ==
        MULCIBER_ERROR_SETTING);
  CHECK_THAT(twins.context.message(), ContainsSubstring("translator: is NULL"));
  CHECK(mulciber_score_translations(c, twins.translator, 3, kScored, kScoring, nullptr, nullptr,
                                    &found) == MULCIBER_ERROR_SETTING);
  CHECK_THAT(twins.context.message(), ContainsSubstring("result: is NULL"));
}

TEST_CASE("A translator's report in C has the numbers and languages of C++") {
  TemporaryFolder folder;
  copy_multilingual(folder.path());
  TranslatorTwins twins(folder.path().string());
  MulciberTranslatorReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_translator(twins.c, twins.translator, &report) == MULCIBER_OK);
  const ModelExtents extents = twins.twin.extents();
  CHECK(report.max_source_tokens == twins.twin.max_source_tokens());
  CHECK(report.encoder_layers == extents.encoder_layers);
  CHECK(report.encoder_heads == extents.encoder_heads);
  CHECK(report.decoder_layers == extents.decoder_layers);
  CHECK(report.decoder_heads == extents.decoder_heads);
  CHECK(report.cross_layers == extents.cross_layers);
  CHECK(report.cross_heads == extents.cross_heads);
  CHECK(report.start_token == twins.twin.start_token());
  CHECK(std::vector<std::string>(report.languages, report.languages + report.language_count) ==
        twins.twin.languages());
  CHECK(report.language_count == 2);
  CHECK(mulciber_describe_translator(twins.c, nullptr, &report) == MULCIBER_ERROR_SETTING);
  CHECK(mulciber_describe_translator(twins.c, twins.translator, nullptr) == MULCIBER_ERROR_SETTING);

  // A language of the report is one of a translation.
  MulciberTranslateInfo info = {sizeof(info)};
  info.target_language = "fra";
  MulciberResult* result = nullptr;
  const MulciberTranslation* found = nullptr;
  REQUIRE(mulciber_translate(twins.c, twins.translator, 1, kScored, &info, &result, &found) ==
          MULCIBER_OK);
  check_translation(*found, twins.twin.translate(kScoredSources[0], {.target_language = "fra"}));
  CHECK(std::string(found->source_tokens[0]) == ">>fra<<");
  mulciber_destroy_result(result);
}

TEST_CASE("Tokens, ids and texts in C become one another as in C++") {
  TemporaryFolder folder;
  copy_multilingual(folder.path());
  TranslatorTwins twins(folder.path().string());
  MulciberContext* c = twins.c;
  MulciberResult* result = nullptr;
  const MulciberTranslationTokens* tokens = nullptr;
  MulciberTranslateInfo info = {sizeof(info)};
  info.target_language = "deu";
  REQUIRE(mulciber_translator_tokens(c, twins.translator, MULCIBER_TRANSLATION_SOURCE, "the iron",
                                     &info, &result, &tokens) == MULCIBER_OK);
  const std::vector<uint32_t> expected =
      twins.twin.token_ids("the iron", TranslationSide::kSource, {.target_language = "deu"});
  CHECK(tokens->size == sizeof(*tokens));
  check_tokens(tokens->count, tokens->ids, tokens->tokens, expected,
               twins.twin.tokens_of(expected));
  std::vector<uint32_t> ids(tokens->count);
  REQUIRE(mulciber_translator_ids(c, twins.translator, MULCIBER_TRANSLATION_SOURCE, tokens->count,
                                  tokens->tokens, ids.data()) == MULCIBER_OK);
  CHECK(ids == expected);
  mulciber_destroy_result(result);
  REQUIRE(mulciber_translator_tokens(c, twins.translator, MULCIBER_TRANSLATION_TARGET, "the iron",
                                     nullptr, &result, &tokens) == MULCIBER_OK);
  CHECK(std::vector(tokens->ids, tokens->ids + tokens->count) ==
        twins.twin.token_ids("the iron", TranslationSide::kTarget));
  mulciber_destroy_result(result);
  const char* text = nullptr;
  for (const auto& [side, same] :
       {std::pair(MULCIBER_TRANSLATION_SOURCE, TranslationSide::kSource),
        std::pair(MULCIBER_TRANSLATION_TARGET, TranslationSide::kTarget)}) {
    REQUIRE(mulciber_translator_text(c, twins.translator, side,
                                     static_cast<uint32_t>(expected.size()), expected.data(),
                                     &result, &text) == MULCIBER_OK);
    CHECK(text == twins.twin.text_of(expected, same));
    mulciber_destroy_result(result);
  }
  const char* const unknown[] = {"no piece of it"};
  uint32_t id = 0;
  REQUIRE(mulciber_translator_ids(c, twins.translator, MULCIBER_TRANSLATION_TARGET, 1, unknown,
                                  &id) == MULCIBER_OK);
  CHECK(id == 1);

  const auto refused = [&](MulciberStatus status) {
    CHECK(status == MULCIBER_ERROR_SETTING);
    return twins.context.message();
  };
  const auto neither = static_cast<MulciberTranslationSide>(2);
  const auto named = ContainsSubstring("side: is 2; give one of MulciberTranslationSide");
  CHECK_THAT(refused(mulciber_translator_tokens(c, twins.translator, neither, "iron", nullptr,
                                                &result, &tokens)),
             named);
  CHECK(result == nullptr);
  CHECK(tokens == nullptr);
  CHECK_THAT(refused(mulciber_translator_ids(c, twins.translator, neither, 1, unknown, &id)),
             named);
  CHECK_THAT(
      refused(mulciber_translator_text(c, twins.translator, neither, 1, &id, &result, &text)),
      named);
  CHECK(text == nullptr);
  CHECK_THAT(refused(mulciber_translator_tokens(c, twins.translator, MULCIBER_TRANSLATION_SOURCE,
                                                nullptr, nullptr, &result, &tokens)),
             ContainsSubstring("text: is NULL"));
  CHECK_THAT(refused(mulciber_translator_ids(c, twins.translator, MULCIBER_TRANSLATION_SOURCE, 1,
                                             nullptr, &id)),
             ContainsSubstring("tokens: is NULL"));
  CHECK_THAT(refused(mulciber_translator_ids(c, twins.translator, MULCIBER_TRANSLATION_SOURCE, 1,
                                             unknown, nullptr)),
             ContainsSubstring("ids: is NULL"));
  CHECK_THAT(refused(mulciber_translator_text(c, twins.translator, MULCIBER_TRANSLATION_SOURCE, 1,
                                              nullptr, &result, &text)),
             ContainsSubstring("ids: is NULL"));
}
