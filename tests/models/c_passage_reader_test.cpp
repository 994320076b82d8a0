// Question answering in C: answers, spans and scores are those of C++.
#include <string>
#include <vector>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/changed_encoder.h"
#include "tests/support.h"

#include "mulciber/c/passage_reader.h"
#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"
#include "mulciber/text_encoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const char* const kAsked = "Why melt?";
const std::string kRead =
    "The red hammer strikes the anvil.\nWhy did the smith melt 42 pots?\n"
    "The anvil, the hammer and the forge.\n";

/// The small encoder, as a model that finds answers.
struct SmallReader {
  ChangedEncoder files;
  SmallReader() { files.make_reader(); }
};

/// A passage reader in C, and a twin in C++ on the same device.
struct ReaderTwins : SmallReader, Session {
  MulciberPassageReader* reader = nullptr;
  PassageReader twin;

  ReaderTwins() : Session(files.path()), twin(adopt_device(application.lent()), files.path()) {
    REQUIRE(mulciber_load_passage_reader(c, device, model, nullptr, &reader) == MULCIBER_OK);
  }
  ~ReaderTwins() { mulciber_destroy_passage_reader(reader); }

  void check(const MulciberAnswerInfo* info, const AnswerOptions& options) {
    const std::vector<PassageAnswer> expected = twin.answer(kAsked, kRead, options);
    MulciberResult* result = nullptr;
    uint32_t count = 0;
    const MulciberPassageAnswer* found = nullptr;
    REQUIRE(mulciber_answer_question(c, reader, kAsked, kRead.c_str(), info, &result, &count,
                                     &found) == MULCIBER_OK);
    REQUIRE(count == expected.size());
    CHECK(count > 0);
    for (uint32_t i = 0; i < count; ++i) {
      CHECK(found[i].size == sizeof(found[i]));
      CHECK(found[i].text == expected[i].text);
      CHECK(found[i].begin == expected[i].begin);
      CHECK(found[i].end == expected[i].end);
      CHECK(found[i].score == expected[i].score);
    }
    mulciber_destroy_result(result);
  }
};

}  // namespace

TEST_CASE("Answers in C are those in C++ with each option") {
  ReaderTwins twins;
  MulciberContext* c = twins.c;
  twins.check(nullptr, {});
  MulciberAnswerInfo info = {sizeof(info)};
  info.best = 5;
  info.longest_tokens = 6;
  AnswerOptions options = {.best = 5, .longest_tokens = 6};
  twins.check(&info, options);
  info.set_overlap_tokens = 1;
  for (const uint32_t overlap : {0u, 7u}) {
    info.overlap_tokens = overlap;
    options.overlap_tokens = overlap;
    twins.check(&info, options);
  }
  info.may_be_none = 1;
  info.best = 1000;
  options.may_be_none = true;
  options.best = 1000;
  twins.check(&info, options);
  std::vector<uint64_t> told;
  info.batch_texts = 1;
  info.batch_tokens = 100;
  info.user = &told;
  info.on_progress = [](void* user, uint64_t done, uint64_t) {
    static_cast<std::vector<uint64_t>*>(user)->push_back(done);
  };
  options.batch.batch_texts = 1;
  options.batch.batch_tokens = 100;
  twins.check(&info, options);
  CHECK(told.size() > 1);
  MulciberEncoderStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_passage_reader_statistics(c, twins.reader, &statistics) == MULCIBER_OK);
  CHECK(statistics.batches == told.size());
  CHECK(statistics.batches == twins.twin.statistics().batches);
  CHECK(statistics.tokens == twins.twin.statistics().tokens);
  CHECK(statistics.weight_bytes == twins.twin.statistics().weight_bytes);
  uint64_t bytes = 1;
  REQUIRE(mulciber_trim_passage_reader(c, twins.reader, &bytes) == MULCIBER_OK);
  CHECK(bytes == twins.twin.trim());
  CHECK(mulciber_trim_passage_reader(c, twins.reader, nullptr) == MULCIBER_OK);
  twins.check(nullptr, {});
}

TEST_CASE("A cancelled question in C has no answer, nor has a passage without words") {
  ReaderTwins twins;
  MulciberContext* c = twins.c;
  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(c, &cancel) == MULCIBER_OK);
  mulciber_request_cancel(cancel);
  MulciberAnswerInfo info = {sizeof(info)};
  info.cancel = cancel;
  MulciberResult* result = nullptr;
  uint32_t count = 7;
  const MulciberPassageAnswer* found = nullptr;
  REQUIRE(mulciber_answer_question(c, twins.reader, kAsked, kRead.c_str(), &info, &result, &count,
                                   &found) == MULCIBER_OK);
  CHECK(count == 0);
  mulciber_destroy_result(result);
  mulciber_destroy_cancel(cancel);
  count = 7;
  REQUIRE(mulciber_answer_question(c, twins.reader, kAsked, " ", nullptr, &result, &count,
                                   &found) == MULCIBER_OK);
  CHECK(count == 0);
  mulciber_destroy_result(result);
}

TEST_CASE("Wrong arguments of a question in C are refused with their names") {
  ReaderTwins twins;
  MulciberContext* c = twins.c;
  auto* result = reinterpret_cast<MulciberResult*>(c);
  uint32_t count = 7;
  const MulciberPassageAnswer* found = nullptr;
  const auto refused = [&](MulciberStatus status,
                           MulciberStatus expected = MULCIBER_ERROR_SETTING) {
    CHECK(status == expected);
    return twins.context.message();
  };
  CHECK_THAT(refused(mulciber_answer_question(c, nullptr, kAsked, kRead.c_str(), nullptr, &result,
                                              &count, &found)),
             ContainsSubstring("reader: is NULL"));
  CHECK(result == nullptr);
  CHECK(count == 0);
  CHECK_THAT(refused(mulciber_answer_question(c, twins.reader, nullptr, kRead.c_str(), nullptr,
                                              &result, &count, &found)),
             ContainsSubstring("question: is NULL"));
  CHECK_THAT(refused(mulciber_answer_question(c, twins.reader, kAsked, nullptr, nullptr, &result,
                                              &count, &found)),
             ContainsSubstring("passage: is NULL"));
  CHECK_THAT(refused(mulciber_answer_question(c, twins.reader, kAsked, kRead.c_str(), nullptr,
                                              nullptr, &count, &found)),
             ContainsSubstring("result: is NULL"));
  CHECK_THAT(refused(mulciber_answer_question(c, twins.reader, kAsked, kRead.c_str(), nullptr,
                                              &result, nullptr, &found)),
             ContainsSubstring("count: is NULL"));
  CHECK_THAT(refused(mulciber_answer_question(c, twins.reader, kAsked, kRead.c_str(), nullptr,
                                              &result, &count, nullptr)),
             ContainsSubstring("answers: is NULL"));
  std::string question;
  for (int i = 0; i < 60; ++i) question += "iron ";
  CHECK_THAT(refused(mulciber_answer_question(c, twins.reader, question.c_str(), kRead.c_str(),
                                              nullptr, &result, &count, &found),
                     MULCIBER_ERROR_MODEL),
             ContainsSubstring("leaves no room"));
  MulciberEncoderStatistics statistics = {sizeof(statistics)};
  CHECK_THAT(refused(mulciber_passage_reader_statistics(c, nullptr, &statistics)),
             ContainsSubstring("reader: is NULL"));
  CHECK_THAT(refused(mulciber_trim_passage_reader(c, nullptr, nullptr)),
             ContainsSubstring("reader: is NULL"));
  // The small encoder classifies, and finds no answers.
  MulciberModel* model = nullptr;
  MulciberPassageReader* reader = nullptr;
  REQUIRE(mulciber_open_model(c, small_encoder().c_str(), &model) == MULCIBER_OK);
  CHECK_THAT(refused(mulciber_load_passage_reader(c, twins.device, model, nullptr, &reader),
                     MULCIBER_ERROR_MODEL),
             ContainsSubstring("ForQuestionAnswering"));
  CHECK(reader == nullptr);
  mulciber_destroy_model(model);
  mulciber_destroy_passage_reader(nullptr);
}
