// Classification in C: labels, probabilities and logits are those of C++.
#include <string>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/changed_encoder.h"
#include "tests/small_decoder.h"
#include "tests/support.h"

#include "mulciber/c/classifier.h"
#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"
#include "mulciber/text_encoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const char* const kLabelled[] = {"Why did the smith melt 42 crucibles?", "", "iron",
                                 "The red hammer strikes the anvil."};
const char* const kSecondTexts[] = {"The anvil.", nullptr, "", nullptr};

std::vector<ClassifierInput> labelled_inputs(bool pairs) {
  std::vector<ClassifierInput> inputs;
  for (size_t i = 0; i < 4; ++i) {
    inputs.push_back({kLabelled[i], std::nullopt});
    if (pairs && kSecondTexts[i]) inputs.back().pair = kSecondTexts[i];
  }
  return inputs;
}

/// A classifier in C, and a twin in C++ on the same device.
struct ClassifierTwins : Session {
  MulciberClassifier* classifier = nullptr;
  Classifier twin;

  explicit ClassifierTwins(const std::string& path)
      : Session(path), twin(adopt_device(application.lent()), path) {
    REQUIRE(mulciber_load_classifier(c, device, model, nullptr, &classifier) == MULCIBER_OK);
  }
  ~ClassifierTwins() { mulciber_destroy_classifier(classifier); }

  void check(const MulciberClassifyInfo* info, bool pairs, const TextBatchOptions& options) {
    const std::vector<Classification> expected = twin.classify(labelled_inputs(pairs), options);
    MulciberResult* result = nullptr;
    const MulciberClassification* found = nullptr;
    REQUIRE(mulciber_classify(c, classifier, 4, kLabelled, pairs ? kSecondTexts : nullptr, info,
                              &result, &found) == MULCIBER_OK);
    for (size_t i = 0; i < 4; ++i) {
      INFO(kLabelled[i]);
      CHECK(found[i].size == sizeof(found[i]));
      CHECK(found[i].complete);
      CHECK((found[i].truncated != 0) == expected[i].truncated);
      CHECK(found[i].tokens == expected[i].tokens);
      CHECK(found[i].best == expected[i].best);
      REQUIRE(found[i].label_count == expected[i].probabilities.size());
      CHECK(std::vector(found[i].probabilities, found[i].probabilities + found[i].label_count) ==
            expected[i].probabilities);
      CHECK(std::vector(found[i].logits, found[i].logits + found[i].label_count) ==
            expected[i].logits);
    }
    mulciber_destroy_result(result);
  }
};

}  // namespace

TEST_CASE("Classifications of texts and of pairs in C are those in C++") {
  ClassifierTwins twins(small_encoder());
  MulciberContext* c = twins.c;
  twins.check(nullptr, false, {});
  twins.check(nullptr, true, {});
  std::vector<std::pair<uint64_t, uint64_t>> told;
  MulciberClassifyInfo info = {sizeof(info)};
  info.batch_texts = 2;
  info.batch_tokens = 128;
  info.user = &told;
  info.on_progress = [](void* user, uint64_t done, uint64_t total) {
    static_cast<decltype(told)*>(user)->emplace_back(done, total);
  };
  TextBatchOptions options;
  options.batch_texts = 2;
  options.batch_tokens = 128;
  twins.check(&info, false, options);
  CHECK(told == std::vector<std::pair<uint64_t, uint64_t>>{{2, 4}, {4, 4}});
  MulciberEncoderStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_classifier_statistics(c, twins.classifier, &statistics) == MULCIBER_OK);
  CHECK(statistics.texts == 4);
  CHECK(statistics.batches == 2);
  CHECK(statistics.tokens == twins.twin.statistics().tokens);
  CHECK(statistics.padded_tokens == twins.twin.statistics().padded_tokens);
  CHECK(statistics.weight_bytes == twins.twin.statistics().weight_bytes);

  MulciberClassifierReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_classifier(c, twins.classifier, &report) == MULCIBER_OK);
  CHECK_FALSE(report.several_labels);
  CHECK(report.max_tokens == twins.twin.max_tokens());
  CHECK(std::vector<std::string>(report.labels, report.labels + report.label_count) ==
        twins.twin.labels());
  uint64_t bytes = 1;
  REQUIRE(mulciber_trim_classifier(c, twins.classifier, &bytes) == MULCIBER_OK);
  CHECK(bytes == twins.twin.trim());
  CHECK(mulciber_trim_classifier(c, twins.classifier, nullptr) == MULCIBER_OK);
  twins.check(nullptr, false, {});
}

TEST_CASE("Labels of which several may hold have a probability each in C") {
  const ChangedEncoder files;
  files.set("problem_type", "multi_label_classification");
  ClassifierTwins twins(files.path());
  MulciberClassifierReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_classifier(twins.c, twins.classifier, &report) == MULCIBER_OK);
  CHECK(report.several_labels);
  twins.check(nullptr, false, {});
}

TEST_CASE("A cancelled classification in C says what is complete") {
  ClassifierTwins twins(small_encoder());
  MulciberContext* c = twins.c;
  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(c, &cancel) == MULCIBER_OK);
  MulciberClassifyInfo info = {sizeof(info)};
  info.batch_texts = 2;
  info.cancel = cancel;
  info.user = cancel;
  info.on_progress = [](void* user, uint64_t, uint64_t) {
    mulciber_request_cancel(static_cast<MulciberCancel*>(user));
  };
  MulciberResult* result = nullptr;
  const MulciberClassification* found = nullptr;
  REQUIRE(mulciber_classify(c, twins.classifier, 4, kLabelled, nullptr, &info, &result, &found) ==
          MULCIBER_OK);
  uint32_t complete = 0;
  for (size_t i = 0; i < 4; ++i) {
    complete += found[i].complete;
    CHECK((found[i].label_count > 0) == (found[i].complete != 0));
  }
  CHECK(complete == 2);
  mulciber_destroy_result(result);
  mulciber_destroy_cancel(cancel);
}

TEST_CASE("Wrong arguments of a classification in C are refused with their names") {
  ClassifierTwins twins(small_encoder());
  MulciberContext* c = twins.c;
  auto* result = reinterpret_cast<MulciberResult*>(c);
  const MulciberClassification* found = nullptr;
  const auto refused = [&](MulciberStatus status,
                           MulciberStatus expected = MULCIBER_ERROR_SETTING) {
    CHECK(status == expected);
    return twins.context.message();
  };
  CHECK_THAT(
      refused(mulciber_classify(c, nullptr, 4, kLabelled, nullptr, nullptr, &result, &found)),
      ContainsSubstring("classifier: is NULL"));
  CHECK(result == nullptr);
  CHECK_THAT(refused(mulciber_classify(c, twins.classifier, 4, nullptr, nullptr, nullptr, &result,
                                       &found)),
             ContainsSubstring("texts: is NULL"));
  CHECK_THAT(refused(mulciber_classify(c, twins.classifier, 4, kSecondTexts, nullptr, nullptr,
                                       &result, &found)),
             ContainsSubstring("texts: is NULL"));
  CHECK_THAT(refused(mulciber_classify(c, twins.classifier, 4, kLabelled, nullptr, nullptr, nullptr,
                                       &found)),
             ContainsSubstring("result: is NULL"));
  CHECK_THAT(refused(mulciber_classify(c, twins.classifier, 4, kLabelled, nullptr, nullptr, &result,
                                       nullptr)),
             ContainsSubstring("classifications: is NULL"));
  std::string endless;
  for (int i = 0; i < 60; ++i) endless += "iron ";
  const char* const texts[] = {endless.c_str()};
  MulciberClassifyInfo info = {sizeof(info)};
  REQUIRE(mulciber_classify(c, twins.classifier, 1, texts, nullptr, &info, &result, &found) ==
          MULCIBER_OK);
  CHECK(found->truncated);
  mulciber_destroy_result(result);
  info.refuse_long = 1;
  CHECK_THAT(
      refused(mulciber_classify(c, twins.classifier, 1, texts, nullptr, &info, &result, &found),
              MULCIBER_ERROR_MODEL),
      ContainsSubstring("text 1 of 1"));
  info = {4};
  CHECK_THAT(
      refused(mulciber_classify(c, twins.classifier, 1, texts, nullptr, &info, &result, &found)),
      ContainsSubstring("set size to sizeof"));
  MulciberClassifierReport report = {sizeof(report)};
  CHECK_THAT(refused(mulciber_describe_classifier(c, nullptr, &report)),
             ContainsSubstring("classifier: is NULL"));
  MulciberEncoderStatistics statistics = {sizeof(statistics)};
  CHECK_THAT(refused(mulciber_classifier_statistics(c, nullptr, &statistics)),
             ContainsSubstring("classifier: is NULL"));
  CHECK_THAT(refused(mulciber_trim_classifier(c, nullptr, nullptr)),
             ContainsSubstring("classifier: is NULL"));
  // A model without labels, and one of another kind.
  const ChangedEncoder files;
  files.set("architectures", {"RobertaModel"});
  MulciberClassifier* classifier = nullptr;
  for (const auto& [path, words] : {std::pair(files.path(), "no head that classifies"),
                                    std::pair(small_decoder().string(), "mulciber")}) {
    MulciberModel* model = nullptr;
    REQUIRE(mulciber_open_model(c, path.c_str(), &model) == MULCIBER_OK);
    CHECK_THAT(refused(mulciber_load_classifier(c, twins.device, model, nullptr, &classifier),
                       MULCIBER_ERROR_MODEL),
               ContainsSubstring(words));
    CHECK(classifier == nullptr);
    mulciber_destroy_model(model);
  }
  CHECK_THAT(refused(mulciber_load_classifier(c, nullptr, twins.model, nullptr, &classifier)),
             ContainsSubstring("device: is NULL"));
  mulciber_destroy_classifier(nullptr);
}
