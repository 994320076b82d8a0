// Continuous batching of translations in C: they are those of C++, bit for bit.
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/c_translations.h"
#include "tests/catch.h"
#include "tests/small_marian.h"
#include "tests/support.h"

#include "mulciber/batch_translator.h"
#include "mulciber/c/batch_translator.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> kSubmitted = {"Why did the smith melt 42 crucibles?",
                                             "The red hammer strikes the anvil.", "iron",
                                             "The anvil, the hammer and the forge.", ""};

/// A batch in C, one in C++ that is given the same requests, and another one that translates each
/// alone.
struct BatchTwins : TranslatorTwins {
  MulciberBatchTranslator* batch = nullptr;
  BatchTranslator mirror{twin, {.slots = 2}}, other{twin, {.slots = 2}};
  std::map<uint64_t, Translation> expected;
  std::map<uint64_t, int> told;  // calls for each number
  std::vector<std::string> errors;
  bool again = false;  // on_end submits another request

  BatchTwins() : TranslatorTwins(small_marian().string()) {
    const MulciberBatchTranslatorInfo info = {sizeof(info), 2};
    REQUIRE(mulciber_create_batch_translator(c, translator, &info, &batch) == MULCIBER_OK);
  }
  ~BatchTwins() { mulciber_destroy_batch_translator(batch); }

  static void on_end(void* user, uint64_t number, const MulciberTranslation* translation) {
    auto& self = *static_cast<BatchTwins*>(user);
    ++self.told[number];
    REQUIRE(self.expected.count(number) == 1);
    check_translation(*translation, self.expected[number]);
    if (self.again) {
      self.again = false;
      self.submit("iron", nullptr, {});
    }
  }
  static void on_error(void* user, uint64_t number, MulciberStatus, const char* message) {
    auto& self = *static_cast<BatchTwins*>(user);
    ++self.told[number];
    self.errors.emplace_back(message);
  }
  /// Lets C++ translate a request alone, and submits it in C. Returns its number.
  uint64_t submit(const char* text, const MulciberTranslateInfo* info,
                  const TranslateOptions& options, const std::vector<uint32_t>& ids = {}) {
    Translation made;
    other.submit({.text = text ? text : "",
                  .options = options,
                  .on_end = [&](const Translation& ended) { made = ended; },
                  .source_ids = ids});
    while (other.step()) {
    }
    mirror.submit({.text = text ? text : "", .options = options, .source_ids = ids});
    MulciberTranslationRequest request = {sizeof(request)};
    request.text = text;
    request.info = info;
    request.on_end = on_end;
    request.on_error = on_error;
    request.user = this;
    uint64_t number = 0;
    REQUIRE(mulciber_submit_translation(c, batch, &request, &number) == MULCIBER_OK);
    expected[number] = made;
    return number;
  }
  void run() {
    MulciberBool busy = 1;
    while (busy) {
      mirror.step();
      REQUIRE(mulciber_step_translations(c, batch, &busy) == MULCIBER_OK);
    }
  }
};

}  // namespace

TEST_CASE("Translations of a batch in C are those of a batch in C++") {
  BatchTwins twins;
  MulciberTranslateInfo info = {sizeof(info)};
  info.beams = 3;
  info.n_best = 2;
  for (const std::string& text : kSubmitted) {
    twins.submit(text.c_str(), nullptr, {});
    twins.submit(text.c_str(), &info, {.beams = 3, .n_best = 2});
  }
  const std::vector<uint32_t> ids = twins.twin.token_ids("iron");
  const MulciberIdSequence sequence = {sizeof(sequence), static_cast<uint32_t>(ids.size()),
                                       ids.data()};
  info = {sizeof(info)};
  info.source_ids = &sequence;
  twins.submit(nullptr, &info, {}, ids);
  twins.again = true;
  twins.run();
  CHECK(twins.told.size() == 2 * kSubmitted.size() + 2);
  for (const auto& [number, calls] : twins.told) CHECK(calls == 1);
  CHECK(twins.errors.empty());

  MulciberBatchTranslatorStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_batch_translator_statistics(twins.c, twins.batch, &statistics) == MULCIBER_OK);
  const BatchTranslatorStatistics& same = twins.mirror.statistics();
  CHECK(statistics.running == 0);
  CHECK(statistics.waiting == 0);
  CHECK(statistics.requests == twins.told.size());
  CHECK(statistics.requests == same.requests);
  CHECK(statistics.ended == same.ended);
  CHECK(statistics.cancelled == 0);
  CHECK(statistics.source_tokens == same.source_tokens);
  CHECK(statistics.target_tokens == same.target_tokens);
  CHECK(statistics.steps == same.steps);
  CHECK(statistics.sequence_steps == same.sequence_steps);
  CHECK(statistics.row_steps == same.row_steps);
  CHECK(statistics.needed_row_steps == same.needed_row_steps);
  CHECK(statistics.refills == same.refills);
  CHECK(statistics.encode_seconds > 0);
  CHECK(statistics.decode_seconds > 0);
}

TEST_CASE("A request that is cancelled in C ends at the next step") {
  BatchTwins twins;
  MulciberContext* c = twins.c;
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < 4; ++i)
    numbers.push_back(twins.submit(kSubmitted[i].c_str(), nullptr, {}));
  MulciberBool busy = 0;
  REQUIRE(mulciber_step_translations(c, twins.batch, &busy) == MULCIBER_OK);
  CHECK(busy);
  MulciberBatchTranslatorStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_batch_translator_statistics(c, twins.batch, &statistics) == MULCIBER_OK);
  CHECK(statistics.running == 2);
  CHECK(statistics.waiting == 2);
  for (const size_t i : {0, 3}) {  // one runs, the other waits
    const Translation& whole = twins.expected[numbers[i]];
    twins.expected[numbers[i]] = {.source_ids = whole.source_ids,
                                  .source_tokens = whole.source_tokens};
    mulciber_cancel_translation(twins.batch, numbers[i]);
  }
  REQUIRE(mulciber_step_translations(c, twins.batch, &busy) == MULCIBER_OK);
  CHECK(twins.told[numbers[0]] == 1);
  CHECK(twins.told[numbers[3]] == 1);
  twins.run();
  CHECK(twins.told.size() == 4);
  REQUIRE(mulciber_batch_translator_statistics(c, twins.batch, &statistics) == MULCIBER_OK);
  CHECK(statistics.cancelled == 2);
  CHECK(statistics.ended == 2);
  mulciber_cancel_translation(twins.batch, numbers[1]);  // it has ended
  mulciber_cancel_translation(nullptr, 1);
  REQUIRE(mulciber_step_translations(c, twins.batch, &busy) == MULCIBER_OK);
  CHECK_FALSE(busy);
}

TEST_CASE("A request in C tells its error, which ends no other request") {
  BatchTwins twins;
  MulciberContext* c = twins.c;
  // A masked head of infinity spoils the logits.
  const std::vector<float> endless(9, std::numeric_limits<float>::infinity());
  MulciberHeadMasks masks = {sizeof(masks)};
  masks.cross_count = 9;
  masks.cross = endless.data();
  MulciberTranslateInfo info = {sizeof(info)};
  info.head_masks = &masks;
  struct Told {
    uint64_t number = 0;
    MulciberStatus status = MULCIBER_OK;
    std::string message;
  } told;
  MulciberTranslationRequest request = {sizeof(request)};
  request.text = "iron";
  request.info = &info;
  request.on_end = [](void*, uint64_t, const MulciberTranslation*) { FAIL("it ended"); };
  request.on_error = [](void* user, uint64_t number, MulciberStatus status, const char* message) {
    *static_cast<Told*>(user) = {number, status, message};
  };
  request.user = &told;
  uint64_t number = 0;
  REQUIRE(mulciber_submit_translation(c, twins.batch, &request, &number) == MULCIBER_OK);
  const uint64_t other = twins.submit("iron", nullptr, {});
  twins.run();
  CHECK(told.number == number);
  CHECK(told.status == MULCIBER_ERROR_MODEL);
  CHECK_FALSE(told.message.empty());
  CHECK(twins.told[other] == 1);
  CHECK(twins.context.message().empty());  // no call has failed
}

TEST_CASE("Wrong arguments of a batch in C are refused with their names") {
  BatchTwins twins;
  MulciberContext* c = twins.c;
  const auto refused = [&](MulciberStatus status,
                           MulciberStatus expected = MULCIBER_ERROR_SETTING) {
    CHECK(status == expected);
    return twins.context.message();
  };
  MulciberTranslationRequest request = {sizeof(request)};
  uint64_t number = 7;
  CHECK_THAT(refused(mulciber_submit_translation(c, twins.batch, &request, &number)),
             ContainsSubstring("text: is NULL"));
  CHECK(number == 0);
  request.text = "iron";
  CHECK_THAT(refused(mulciber_submit_translation(c, nullptr, &request, &number)),
             ContainsSubstring("batch: is NULL"));
  CHECK_THAT(refused(mulciber_submit_translation(c, twins.batch, nullptr, &number)),
             ContainsSubstring("MulciberTranslationRequest: is NULL"));
  const std::vector<uint32_t> ids = twins.twin.token_ids("iron");
  const MulciberIdSequence sequence = {sizeof(sequence), static_cast<uint32_t>(ids.size()),
                                       ids.data()};
  MulciberTranslateInfo info = {sizeof(info)};
  info.source_ids = &sequence;
  request.info = &info;
  CHECK_THAT(refused(mulciber_submit_translation(c, twins.batch, &request, &number)),
             ContainsSubstring("text: is given beside ids"));
  info = {sizeof(info), 99};
  CHECK_THAT(
      refused(mulciber_submit_translation(c, twins.batch, &request, &number), MULCIBER_ERROR_MODEL),
      ContainsSubstring("beams: 99"));
  MulciberBool busy = 1;
  REQUIRE(mulciber_step_translations(c, twins.batch, &busy) == MULCIBER_OK);
  CHECK_FALSE(busy);  // nothing was accepted
  CHECK_THAT(refused(mulciber_step_translations(c, nullptr, &busy)),
             ContainsSubstring("batch: is NULL"));
  CHECK_THAT(refused(mulciber_step_translations(c, twins.batch, nullptr)),
             ContainsSubstring("busy: is NULL"));
  MulciberBatchTranslator* none = nullptr;
  CHECK_THAT(refused(mulciber_create_batch_translator(c, nullptr, nullptr, &none)),
             ContainsSubstring("translator: is NULL"));
  CHECK(none == nullptr);
  CHECK_THAT(refused(mulciber_create_batch_translator(c, twins.translator, nullptr, nullptr)),
             ContainsSubstring("batch: is NULL"));
  CHECK_THAT(refused(mulciber_batch_translator_statistics(c, twins.batch, nullptr)),
             ContainsSubstring("is NULL"));
  mulciber_destroy_batch_translator(nullptr);
}
