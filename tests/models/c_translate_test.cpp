// Translations that C computes at once: they are those of C++, with every option.
#include <string>
#include <utility>
#include <vector>

#include "tests/c_translations.h"
#include "tests/catch.h"
#include "tests/small_marian.h"
#include "tests/support.h"

#include "mulciber/c/batch_translator.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> kSeveralTexts = {"Why did the smith melt 42 crucibles?", "",
                                                "The red hammer strikes the anvil.", "iron"};

const char* const kSeveral[] = {kSeveralTexts[0].c_str(), kSeveralTexts[1].c_str(),
                                kSeveralTexts[2].c_str(), kSeveralTexts[3].c_str()};

/// Translates the texts in C and checks that C++ gives the same.
void check_options(TranslatorTwins& twins, const MulciberTranslateInfo& info,
                   const TranslateOptions& options) {
  MulciberResult* result = nullptr;
  const MulciberTranslation* found = nullptr;
  REQUIRE(mulciber_translate(twins.c, twins.translator, 4, kSeveral, &info, &result, &found) ==
          MULCIBER_OK);
  const std::vector<Translation> expected = twins.twin.translate(kSeveralTexts, options);
  for (size_t i = 0; i < 4; ++i) check_translation(found[i], expected[i]);
  mulciber_destroy_result(result);
}

void check_floats(const float* found, const std::vector<float>& expected) {
  REQUIRE((found != nullptr) == !expected.empty());
  if (found) CHECK(std::equal(expected.begin(), expected.end(), found));
}

}  // namespace

TEST_CASE("Translations in C are those in C++ with each option") {
  TranslatorTwins twins(small_marian().string());
  MulciberTranslateInfo info = {sizeof(info)};
  check_options(twins, info, {});
  info.beams = 3;
  info.n_best = 2;
  info.max_new_tokens = 12;
  TranslateOptions options = {.beams = 3, .max_new_tokens = 12, .n_best = 2};
  check_options(twins, info, options);
  info.set_length_penalty = 1;
  for (const float penalty : {0.0f, 2.0f}) {
    info.length_penalty = penalty;
    options.length_penalty = penalty;
    check_options(twins, info, options);
  }
  info.set_early_stopping = 1;
  for (const bool early : {false, true}) {
    info.early_stopping = early;
    options.early_stopping = early;
    check_options(twins, info, options);
  }
  const Translation free = twins.twin.translate(kSeveralTexts[0], options);
  REQUIRE(free.ids.size() > 2);
  const uint32_t banned[] = {free.ids[0]}, together[] = {free.ids[1], free.ids[2]};
  const MulciberIdSequence sequences[] = {{sizeof(sequences[0]), 2, together},
                                          {sizeof(sequences[0]), 1, banned}};
  info.banned_sequences = sequences;
  info.banned_sequence_count = 1;
  options.banned_sequences = {{together[0], together[1]}};
  check_options(twins, info, options);
  info.banned_sequence_count = 2;
  options.banned_sequences.push_back({banned[0]});
  check_options(twins, info, options);
  info.banned_sequence_count = 0;
  options.banned_sequences.clear();
  info.banned_tokens = banned;
  info.banned_token_count = 1;
  options.banned_tokens = {banned[0]};
  check_options(twins, info, options);
  info.batch_sentences = 2;
  info.batch_tokens = 40;
  options.batch_sentences = 2;
  options.batch_tokens = 40;
  check_options(twins, info, options);
  options.head_masks.cross = {1, 0, 1, 1, 0.5f, 1, 1, 1, 0};
  options.head_masks.encoder = {0, 1, 1, 1, 1, 1};
  MulciberHeadMasks masks = {sizeof(masks)};
  masks.cross_count = 9;
  masks.cross = options.head_masks.cross.data();
  masks.encoder_count = 6;
  masks.encoder = options.head_masks.encoder.data();
  info.head_masks = &masks;
  check_options(twins, info, options);
}

TEST_CASE("Translations in C have attention maps, progress and statistics of C++") {
  TranslatorTwins twins(small_marian().string());
  MulciberTranslateInfo info = {sizeof(info)};
  info.attention = 1;
  info.batch_sentences = 2;
  std::vector<std::pair<uint64_t, uint64_t>> told;
  info.user = &told;
  info.on_progress = [](void* user, uint64_t done, uint64_t total) {
    static_cast<decltype(told)*>(user)->emplace_back(done, total);
  };
  MulciberResult* result = nullptr;
  const MulciberTranslation* found = nullptr;
  REQUIRE(mulciber_translate(twins.c, twins.translator, 4, kSeveral, &info, &result, &found) ==
          MULCIBER_OK);
  const std::vector<Translation> expected =
      twins.twin.translate(kSeveralTexts, {.attention = true, .batch_sentences = 2});
  for (size_t i = 0; i < 4; ++i) {
    INFO(kSeveralTexts[i]);
    check_translation(found[i], expected[i]);
    REQUIRE((found[i].attention != nullptr) == expected[i].attention.has_value());
    if (!found[i].attention) continue;
    const MulciberTranslationAttention& maps = *found[i].attention;
    const AttentionMaps& same = *expected[i].attention;
    CHECK(maps.size == sizeof(maps));
    CHECK(maps.encoder_layers == same.encoder_layers);
    CHECK(maps.encoder_heads == same.encoder_heads);
    CHECK(maps.decoder_layers == same.decoder_layers);
    CHECK(maps.decoder_heads == same.decoder_heads);
    CHECK(maps.cross_layers == same.cross_layers);
    CHECK(maps.cross_heads == same.cross_heads);
    CHECK(maps.source_length == same.source_length);
    CHECK(maps.target_length == same.target_length);
    check_floats(maps.encoder, same.encoder);
    check_floats(maps.decoder, same.decoder);
    check_floats(maps.cross, same.cross);
  }
  CHECK(found[0].attention != nullptr);
  CHECK(found[1].attention == nullptr);  // a text without tokens
  mulciber_destroy_result(result);
  // The text without tokens is done from the beginning.
  CHECK(told == std::vector<std::pair<uint64_t, uint64_t>>{{2, 4}, {3, 4}, {4, 4}});

  MulciberTranslateStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_translator_statistics(twins.c, twins.translator, &statistics) == MULCIBER_OK);
  const TranslateStatistics& same = twins.twin.statistics();
  CHECK(statistics.texts == 4);
  CHECK(statistics.batches == same.batches);
  CHECK(statistics.source_tokens == same.source_tokens);
  CHECK(statistics.target_tokens == same.target_tokens);
  CHECK(statistics.decoder_steps == same.decoder_steps);
  CHECK(statistics.row_steps == same.row_steps);
  CHECK(statistics.needed_row_steps == same.needed_row_steps);
  CHECK(statistics.refills == same.refills);
  CHECK(statistics.weight_bytes == same.weight_bytes);
  CHECK(statistics.predicted_device_bytes == same.predicted_device_bytes);
  CHECK(statistics.peak_device_bytes > statistics.weight_bytes);
  CHECK(statistics.load_seconds > 0);
  CHECK(statistics.tokenize_seconds > 0);
  CHECK(statistics.encode_seconds > 0);
  CHECK(statistics.decode_seconds > 0);
  CHECK(statistics.attention_seconds > 0);
  CHECK(statistics.first_token_seconds > 0);
  CHECK(statistics.total_seconds >= statistics.decode_seconds);
  CHECK(mulciber_translator_statistics(twins.c, nullptr, &statistics) == MULCIBER_ERROR_SETTING);
  CHECK(mulciber_translator_statistics(twins.c, twins.translator, nullptr) ==
        MULCIBER_ERROR_SETTING);
}

TEST_CASE("A cancelled call in C gives the translations that are complete") {
  TranslatorTwins twins(small_marian().string());
  MulciberContext* c = twins.c;
  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(c, &cancel) == MULCIBER_OK);
  MulciberTranslateInfo info = {sizeof(info)};
  info.batch_sentences = 1;
  info.cancel = cancel;
  info.user = cancel;
  info.on_progress = [](void* user, uint64_t, uint64_t) {
    mulciber_request_cancel(static_cast<MulciberCancel*>(user));
  };
  MulciberResult* result = nullptr;
  const MulciberTranslation* found = nullptr;
  REQUIRE(mulciber_translate(c, twins.translator, 4, kSeveral, &info, &result, &found) ==
          MULCIBER_OK);
  uint32_t complete = 0;
  for (size_t i = 0; i < 4; ++i) {
    if (found[i].complete) {
      ++complete;
      CHECK(found[i].text == twins.twin.translate(kSeveralTexts[i]).text);
    } else {
      CHECK(found[i].id_count == 0);
      CHECK(std::string(found[i].text).empty());
      CHECK(found[i].alternative_count == 0);
    }
  }
  CHECK(complete >= 2);  // the text without tokens, and the first batch
  CHECK(complete < 4);
  mulciber_destroy_result(result);
  mulciber_reset_cancel(cancel);
  info.on_progress = nullptr;
  check_options(twins, info, {.batch_sentences = 1});
  mulciber_destroy_cancel(cancel);
}

TEST_CASE("Ids of sources in C have the translations that they have in C++") {
  TranslatorTwins twins(small_marian().string());
  MulciberContext* c = twins.c;
  const std::vector<uint32_t> first = twins.twin.token_ids(kSeveralTexts[0]),
                              last = twins.twin.token_ids(kSeveralTexts[3]);
  const MulciberIdSequence sources[] = {
      {sizeof(sources[0]), static_cast<uint32_t>(first.size()), first.data()},
      {sizeof(sources[0]), 0, nullptr},
      {sizeof(sources[0]), static_cast<uint32_t>(last.size()), last.data()}};
  MulciberTranslateInfo info = {sizeof(info)};
  info.source_ids = sources;
  MulciberResult* result = nullptr;
  const MulciberTranslation* found = nullptr;
  REQUIRE(mulciber_translate(c, twins.translator, 3, nullptr, &info, &result, &found) ==
          MULCIBER_OK);
  const std::vector<Translation> expected =
      twins.twin.translate_ids(std::vector<std::vector<uint32_t>>{first, {}, last});
  for (size_t i = 0; i < 3; ++i) check_translation(found[i], expected[i]);
  mulciber_destroy_result(result);

  MulciberTask* task = nullptr;
  REQUIRE(mulciber_begin_translation(c, twins.translator, nullptr, &info, &task) == MULCIBER_OK);
  twins.finish(task);
  MulciberText text = {sizeof(text)};
  REQUIRE(mulciber_so_far(c, task, &text) == MULCIBER_OK);
  CHECK(text.complete);
  CHECK(text.text == expected[0].text);
  CHECK(std::vector(text.source_ids, text.source_ids + text.source_count) == first);
  mulciber_destroy_task(task);

  const auto refused = [&](MulciberStatus status, MulciberStatus expected_status) {
    CHECK(status == expected_status);
    return twins.context.message();
  };
  CHECK_THAT(refused(mulciber_begin_translation(c, twins.translator, "iron", &info, &task),
                     MULCIBER_ERROR_SETTING),
             ContainsSubstring("text: is given beside ids"));
  CHECK(task == nullptr);
  CHECK_THAT(refused(mulciber_translate(c, twins.translator, 3, kSeveral, &info, &result, &found),
                     MULCIBER_ERROR_SETTING),
             ContainsSubstring("texts: is given beside ids"));
  const uint32_t beyond[] = {5, 273};
  const MulciberIdSequence wrong[] = {{sizeof(wrong[0]), 2, beyond},
                                      {sizeof(wrong[0]), 2, nullptr}};
  info.source_ids = wrong;
  CHECK_THAT(refused(mulciber_translate(c, twins.translator, 1, nullptr, &info, &result, &found),
                     MULCIBER_ERROR_MODEL),
             ContainsSubstring("text 1 of 1: has the token id 273"));
  CHECK_THAT(refused(mulciber_translate(c, twins.translator, 2, nullptr, &info, &result, &found),
                     MULCIBER_ERROR_SETTING),
             ContainsSubstring("ids: is NULL"));
  const MulciberIdSequence sizeless = {};
  info.source_ids = &sizeless;
  CHECK_THAT(refused(mulciber_translate(c, twins.translator, 1, nullptr, &info, &result, &found),
                     MULCIBER_ERROR_SETTING),
             ContainsSubstring("MulciberIdSequence: has a size of 0"));
  CHECK(result == nullptr);
}

TEST_CASE("Wrong arguments of a translation in C are refused with their names") {
  TranslatorTwins twins(small_marian().string());
  MulciberContext* c = twins.c;
  MulciberResult* result = nullptr;
  const MulciberTranslation* found = nullptr;
  const auto refused = [&](const MulciberTranslateInfo& info,
                           MulciberStatus status = MULCIBER_ERROR_MODEL) {
    result = reinterpret_cast<MulciberResult*>(&result);
    CHECK(mulciber_translate(c, twins.translator, 4, kSeveral, &info, &result, &found) == status);
    CHECK(result == nullptr);
    CHECK(found == nullptr);
    return twins.context.message();
  };
  MulciberTranslateInfo info = {sizeof(info)};
  info.beams = 99;
  CHECK_THAT(refused(info), ContainsSubstring("beams: 99"));
  info = {sizeof(info), 2};
  info.n_best = 3;
  CHECK_THAT(refused(info), ContainsSubstring("n-best: 3"));
  info = {sizeof(info)};
  info.set_length_penalty = 1;
  info.length_penalty = 101;
  CHECK_THAT(refused(info), ContainsSubstring("length penalty: 101"));
  info = {sizeof(info)};
  info.target_language = "tlh";
  CHECK_THAT(refused(info), ContainsSubstring("language 'tlh'"));
  info = {sizeof(info)};
  info.source_language = "de";
  CHECK_THAT(refused(info), ContainsSubstring("language 'de'"));
  info = {sizeof(info)};
  info.banned_token_count = 1;
  CHECK_THAT(refused(info, MULCIBER_ERROR_SETTING), ContainsSubstring("banned_tokens: is NULL"));
  info = {sizeof(info)};
  info.banned_sequence_count = 1;
  CHECK_THAT(refused(info, MULCIBER_ERROR_SETTING), ContainsSubstring("banned_sequences: is NULL"));
  const MulciberIdSequence empty = {sizeof(empty), 0, nullptr};
  info.banned_sequences = &empty;
  CHECK_THAT(refused(info), ContainsSubstring("sequence without an id"));
  info = {sizeof(info)};
  MulciberHeadMasks masks = {sizeof(masks)};
  info.head_masks = &masks;
  masks.decoder_count = 8;
  CHECK_THAT(refused(info, MULCIBER_ERROR_SETTING), ContainsSubstring("decoder: is NULL"));
  const std::vector<float> factors(8, 1.0f);
  masks.decoder = factors.data();
  CHECK_THAT(refused(info), ContainsSubstring("8 factors"));
  info = {4};
  CHECK_THAT(refused(info, MULCIBER_ERROR_SETTING), ContainsSubstring("set size to sizeof"));

  const auto named = [&](MulciberStatus status) {
    CHECK(status == MULCIBER_ERROR_SETTING);
    return twins.context.message();
  };
  CHECK_THAT(named(mulciber_translate(c, nullptr, 4, kSeveral, nullptr, &result, &found)),
             ContainsSubstring("translator: is NULL"));
  CHECK_THAT(named(mulciber_translate(c, twins.translator, 4, nullptr, nullptr, &result, &found)),
             ContainsSubstring("texts: is NULL"));
  const char* const some[] = {"iron", nullptr};
  CHECK_THAT(named(mulciber_translate(c, twins.translator, 2, some, nullptr, &result, &found)),
             ContainsSubstring("texts: is NULL"));
  CHECK_THAT(named(mulciber_translate(c, twins.translator, 4, kSeveral, nullptr, nullptr, &found)),
             ContainsSubstring("result: is NULL"));
  CHECK_THAT(named(mulciber_translate(c, twins.translator, 4, kSeveral, nullptr, &result, nullptr)),
             ContainsSubstring("translations: is NULL"));
  std::string endless;
  for (int i = 0; i < 200; ++i) endless += "hammer ";
  const char* const texts[] = {"iron", endless.c_str()};
  CHECK(mulciber_translate(c, twins.translator, 2, texts, nullptr, &result, &found) ==
        MULCIBER_ERROR_MODEL);
  CHECK_THAT(twins.context.message(), ContainsSubstring("text 2 of 2: has"));
  REQUIRE(mulciber_translate(c, twins.translator, 0, nullptr, nullptr, &result, &found) ==
          MULCIBER_OK);
  CHECK(result != nullptr);
  mulciber_destroy_result(result);
}

TEST_CASE("Tasks and requests in C refuse what is of mulciber_translate() alone") {
  TranslatorTwins twins(small_marian().string());
  MulciberContext* c = twins.c;
  MulciberBatchTranslator* batch = nullptr;
  REQUIRE(mulciber_create_batch_translator(c, twins.translator, nullptr, &batch) == MULCIBER_OK);
  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(c, &cancel) == MULCIBER_OK);
  const auto refused = [&](const MulciberTranslateInfo& info, const std::string& field) {
    const auto check = [&](MulciberStatus status) {
      CHECK(status == MULCIBER_ERROR_SETTING);
      CHECK_THAT(twins.context.message(), ContainsSubstring("MulciberTranslateInfo::" + field +
                                                            ": is of mulciber_translate() alone"));
    };
    MulciberTask* task = nullptr;
    check(mulciber_begin_translation(c, twins.translator, "iron", &info, &task));
    CHECK(task == nullptr);
    MulciberWarmup* warmup = nullptr;
    check(mulciber_warm_translator(c, twins.translator, &info, 8, &warmup));
    CHECK(warmup == nullptr);
    MulciberTranslationRequest request = {sizeof(request)};
    request.text = "iron";
    request.info = &info;
    uint64_t number = 7;
    check(mulciber_submit_translation(c, batch, &request, &number));
    CHECK(number == 0);
  };
  MulciberTranslateInfo info = {sizeof(info)};
  info.attention = 1;
  refused(info, "attention");
  info = {sizeof(info)};
  info.batch_tokens = 1;
  refused(info, "batch_tokens");
  info = {sizeof(info)};
  info.batch_sentences = 1;
  refused(info, "batch_sentences");
  info = {sizeof(info)};
  info.on_progress = [](void*, uint64_t, uint64_t) {};
  refused(info, "on_progress");
  info = {sizeof(info)};
  info.cancel = cancel;
  refused(info, "cancel");
  mulciber_destroy_cancel(cancel);
  mulciber_destroy_batch_translator(batch);
}
