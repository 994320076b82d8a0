// Text embeddings in C, at once and in slices: they are those of C++.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "tests/c_destination.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/changed_encoder.h"
#include "tests/small_decoder.h"
#include "tests/support.h"
#include "tests/vulkan_application.h"

#include "mulciber/embedding.h"
#include "mulciber/mulciber_c.h"
#include "mulciber/text_encoder.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> kEmbedded = {"Why did the smith melt 42 crucibles?", "",
                                            "The red hammer strikes the anvil.", "iron"};
const char* const kEmbeddedTexts[] = {kEmbedded[0].c_str(), kEmbedded[1].c_str(),
                                      kEmbedded[2].c_str(), kEmbedded[3].c_str()};

/// A text encoder in C, and a twin in C++ on the same device.
struct EncoderTwins : Session {
  MulciberTextEncoder* encoder = nullptr;
  TextEncoder twin;

  explicit EncoderTwins(const std::string& path)
      : Session(path), twin(adopt_device(application.lent()), path) {
    REQUIRE(mulciber_load_text_encoder(c, device, model, nullptr, &encoder) == MULCIBER_OK);
  }
  ~EncoderTwins() { mulciber_destroy_text_encoder(encoder); }

  /// Embeds in both languages, and checks that the vectors are the same.
  void check(const MulciberEmbedInfo& info, const EmbedOptions& options) {
    const std::vector<TextVector> expected = twin.embed(kEmbedded, options);
    MulciberResult* result = nullptr;
    const MulciberTextVector* found = nullptr;
    REQUIRE(mulciber_embed_texts(c, encoder, 4, kEmbeddedTexts, &info, &result, &found) ==
            MULCIBER_OK);
    std::vector<float> all;
    for (size_t i = 0; i < 4; ++i) {
      INFO(kEmbedded[i]);
      CHECK(found[i].size == sizeof(found[i]));
      CHECK(found[i].complete);
      CHECK((found[i].truncated != 0) == expected[i].truncated);
      CHECK(found[i].tokens == expected[i].tokens);
      CHECK(found[i].rows == 1);
      CHECK(found[i].columns == expected[i].values.size());
      CHECK(std::vector(found[i].values, found[i].values + found[i].columns) == expected[i].values);
      all.insert(all.end(), expected[i].values.begin(), expected[i].values.end());
    }
    mulciber_destroy_result(result);
    std::vector<float> flat(all.size());
    REQUIRE(mulciber_embed(c, encoder, 4, kEmbeddedTexts, &info, flat.data()) == MULCIBER_OK);
    CHECK(flat == all);
  }
  /// The message of embedding, which must fail so.
  std::string refused(const MulciberEmbedInfo& info, MulciberStatus status) {
    auto* result = reinterpret_cast<MulciberResult*>(this);
    const MulciberTextVector* found = nullptr;
    CHECK(mulciber_embed_texts(c, encoder, 4, kEmbeddedTexts, &info, &result, &found) == status);
    CHECK(result == nullptr);
    return context.message();
  }
};

}  // namespace

TEST_CASE("Vectors of texts in C are those in C++") {
  const std::string folder = (source_dir() / "tests/data/roberta_cls").string();
  const Session session(folder);
  MulciberContext* c = session.c;
  MulciberTextEncoder* encoder = nullptr;
  REQUIRE(mulciber_load_text_encoder(c, session.device, session.model, nullptr, &encoder) ==
          MULCIBER_OK);
  const uint32_t width = mulciber_vector_width(encoder);
  const char* texts[] = {"A red house.", "Two dogs run.", ""};
  std::vector<float> vectors(3 * width);
  MulciberEmbedInfo info = {sizeof(info)};
  info.prompt = "say: ";
  REQUIRE(mulciber_embed(c, encoder, 3, texts, &info, vectors.data()) == MULCIBER_OK);
  TextEncoder same(adopt_device(session.application.lent()), folder);
  const std::vector<std::string> copies(std::begin(texts), std::end(texts));
  std::vector<float> expected;
  for (const TextVector& vector : same.embed(copies, {.prompt = "say: "}))
    expected.insert(expected.end(), vector.values.begin(), vector.values.end());
  CHECK(vectors == expected);
  CHECK(mulciber_embed(c, encoder, 3, texts, nullptr, vectors.data()) == MULCIBER_OK);
  CHECK(vectors != expected);

  texts[1] = nullptr;
  CHECK(mulciber_embed(c, encoder, 3, texts, nullptr, vectors.data()) == MULCIBER_ERROR_SETTING);
  std::string endless;
  for (int i = 0; i < 2000; ++i) endless += "word ";
  texts[1] = endless.c_str();
  CHECK(mulciber_embed(c, encoder, 3, texts, nullptr, vectors.data()) == MULCIBER_OK);
  info.refuse_long = VK_TRUE;
  CHECK(mulciber_embed(c, encoder, 3, texts, &info, vectors.data()) == MULCIBER_ERROR_MODEL);
  CHECK_THAT(session.context.message(), ContainsSubstring("text 2 of 3"));
  mulciber_destroy_text_encoder(encoder);
}

TEST_CASE("Vectors in slices in C are those in C++") {
  const Session session(small_encoder());
  MulciberContext* c = session.c;
  MulciberTextEncoder* encoder = nullptr;
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_load_text_encoder(c, session.device, session.model, nullptr, &encoder) ==
          MULCIBER_OK);
  MulciberWarmup* warmup = nullptr;
  REQUIRE(mulciber_warm_text_encoder(c, encoder, nullptr, 24, &warmup) == MULCIBER_OK);
  uint32_t left = 1;
  while (left > 0) REQUIRE(mulciber_prewarm(c, warmup, 8, &left) == MULCIBER_OK);
  mulciber_destroy_warmup(warmup);
  const uint64_t made = mulciber_pipelines_made(session.device);
  REQUIRE(mulciber_begin_embedding(c, encoder, "A red house.", nullptr, &task) == MULCIBER_OK);
  CHECK(mulciber_embedding_tokens(task) > 2);
  CHECK_FALSE(mulciber_is_recorded(task));
  const uint32_t width = mulciber_vector_width(encoder);
  std::vector<float> vector(width);
  CHECK(mulciber_vector(c, task, vector.data()) == MULCIBER_ERROR_SETTING);  // not done
  session.finish(task);
  CHECK(mulciber_is_recorded(task));
  REQUIRE(mulciber_vector(c, task, vector.data()) == MULCIBER_OK);
  CHECK(mulciber_pipelines_made(session.device) == made);
  const auto device = adopt_device(session.application.lent());
  CHECK(vector == TextEncoder(device, small_encoder()).embed("A red house.").values);

  const uint32_t tokens = mulciber_embedding_tokens(task);
  const Destination alone(*device, width), states(*device, uint64_t{tokens} * width);
  const MulciberApplicationBuffer to_vector = c_buffer(alone), to_states = c_buffer(states);
  ApplicationCommands commands(session.application);
  commands.run([&](VkCommandBuffer buffer) {
    CHECK(mulciber_record_vector(c, task, buffer, &to_vector) == MULCIBER_OK);
    CHECK(mulciber_record_states(c, task, buffer, &to_states) == MULCIBER_OK);
  });
  CHECK(std::equal(vector.begin(), vector.end(), alone.floats()));
  CHECK(std::any_of(states.floats(), states.floats() + uint64_t{tokens} * width,
                    [](float value) { return value != 0; }));
  const char* text = nullptr;
  CHECK(mulciber_text(c, task, &text) == MULCIBER_ERROR_SETTING);
  mulciber_destroy_task(task);

  // Rows of embeddings replace the text: every number of the buffer is 0.25.
  const uint32_t columns = mulciber_embedding_width(encoder);
  const Destination rows(*device, uint64_t{3} * columns);
  std::fill_n(const_cast<float*>(rows.floats()), 3 * columns, 0.25f);
  MulciberApplicationBuffer from = c_buffer(rows);
  MulciberEmbedInfo info = {sizeof(info)};
  info.embeddings = &from;
  info.tokens = 3;
  REQUIRE(mulciber_begin_embedding(c, encoder, nullptr, &info, &task) == MULCIBER_OK);
  session.finish(task);
  REQUIRE(mulciber_vector(c, task, vector.data()) == MULCIBER_OK);
  mulciber_destroy_task(task);
  TextEncoder same(device, small_encoder());
  EmbeddingTask twin(same, rows.buffer, 3);
  finish(twin);
  CHECK(vector == twin.result().values);
  from.bytes -= 4;
  CHECK(mulciber_begin_embedding(c, encoder, nullptr, &info, &task) == MULCIBER_ERROR_SETTING);
  CHECK(mulciber_begin_embedding(c, encoder, "A text.", &info, &task) == MULCIBER_ERROR_SETTING);
  CHECK(task == nullptr);
  const char* const texts[] = {"A text."};
  CHECK(mulciber_embed(c, encoder, 1, texts, &info, vector.data()) == MULCIBER_ERROR_SETTING);
  mulciber_destroy_text_encoder(encoder);
}

TEST_CASE("Vectors in C are those in C++ with each option") {
  const ChangedEncoder files;
  files.add_modules({{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", false}},
                    {"Normalize"});
  Json prompts;
  prompts["prompts"]["query"] = "iron ";
  prompts["prompts"]["document"] = "anvil ";
  prompts["default_prompt_name"] = "document";
  files.write("config_sentence_transformers.json", prompts);
  EncoderTwins twins(files.path());
  MulciberEmbedInfo info = {sizeof(info)};
  twins.check(info, {});
  for (const auto& [pooling, same] :
       {std::pair(MULCIBER_POOLING_MEAN, Pooling::kMean),
        std::pair(MULCIBER_POOLING_FIRST, Pooling::kFirst),
        std::pair(MULCIBER_POOLING_LAST, Pooling::kLast),
        std::pair(MULCIBER_POOLING_MAXIMUM, Pooling::kMax),
        std::pair(MULCIBER_POOLING_MEAN_SQRT_LENGTH, Pooling::kMeanSqrtLength),
        std::pair(MULCIBER_POOLING_WEIGHTED_MEAN, Pooling::kWeightedMean)}) {
    INFO(pooling);
    info.pooling = pooling;
    twins.check(info, {.pooling = same});
  }
  info = {sizeof(info)};
  info.set_normalize = 1;
  twins.check(info, {.normalize = false});
  info.normalize = 1;
  twins.check(info, {.normalize = true});
  info.dimensions = 7;
  EmbedOptions options = {.normalize = true};
  options.dimensions = 7;
  twins.check(info, options);
  info = {sizeof(info)};
  info.prompt_name = "query";
  twins.check(info, {.prompt_name = "query"});
  info.prompt_name = nullptr;
  info.prompt = "";
  twins.check(info, {.prompt = ""});
  std::vector<std::pair<uint64_t, uint64_t>> told;
  info.batch_texts = 2;
  info.batch_tokens = 128;
  info.user = &told;
  info.on_progress = [](void* user, uint64_t done, uint64_t total) {
    static_cast<decltype(told)*>(user)->emplace_back(done, total);
  };
  options = {.prompt = ""};
  options.batch.batch_texts = 2;
  options.batch.batch_tokens = 128;
  twins.check(info, options);
  CHECK(told == std::vector<std::pair<uint64_t, uint64_t>>{{2, 4}, {4, 4}, {2, 4}, {4, 4}});

  info = {sizeof(info)};
  info.pooling = MULCIBER_POOLING_POOLER;
  CHECK_THAT(twins.refused(info, MULCIBER_ERROR_MODEL), ContainsSubstring("no pooler"));
  info.pooling = static_cast<MulciberPooling>(8);
  CHECK_THAT(twins.refused(info, MULCIBER_ERROR_SETTING),
             ContainsSubstring("pooling: is 8; give one of MulciberPooling"));
  info = {sizeof(info)};
  info.prompt_name = "title";
  CHECK_THAT(twins.refused(info, MULCIBER_ERROR_MODEL), ContainsSubstring("document, query"));
  info.prompt = "say: ";
  CHECK_THAT(twins.refused(info, MULCIBER_ERROR_SETTING),
             ContainsSubstring("prompt_name: is given beside prompt"));
  info = {sizeof(info)};
  info.dimensions = 49;
  CHECK_THAT(twins.refused(info, MULCIBER_ERROR_MODEL), ContainsSubstring("are 49 of 48"));
}

TEST_CASE("A text encoder's report and statistics in C are those of C++, and it is trimmed") {
  const ChangedEncoder files;
  files.add_modules({{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", false}},
                    {"Normalize"});
  Json prompts;
  prompts["prompts"]["query"] = "iron ";
  prompts["prompts"]["document"] = "anvil ";
  prompts["default_prompt_name"] = "document";
  files.write("config_sentence_transformers.json", prompts);
  EncoderTwins twins(files.path());
  MulciberContext* c = twins.c;
  MulciberTextEncoderReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_text_encoder(c, twins.encoder, &report) == MULCIBER_OK);
  CHECK(report.vector_width == twins.twin.width());
  CHECK(report.embedding_width == twins.twin.embedding_width());
  CHECK(report.state_width == twins.twin.state_width());
  CHECK(report.max_tokens == twins.twin.max_tokens());
  CHECK(report.pooling == MULCIBER_POOLING_FIRST);
  CHECK(report.normalize);
  CHECK(std::string(report.default_prompt) == "document");
  REQUIRE(report.prompt_count == 2);
  for (uint32_t i = 0; i < 2; ++i)
    CHECK(report.prompts[i].text == twins.twin.prompts().at(report.prompts[i].name));
  CHECK(mulciber_describe_text_encoder(c, nullptr, &report) == MULCIBER_ERROR_SETTING);
  CHECK(mulciber_describe_text_encoder(c, twins.encoder, nullptr) == MULCIBER_ERROR_SETTING);

  twins.check({sizeof(MulciberEmbedInfo)}, {});
  MulciberEncoderStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_text_encoder_statistics(c, twins.encoder, &statistics) == MULCIBER_OK);
  const EncoderStatistics& same = twins.twin.statistics();
  CHECK(statistics.texts == 4);
  CHECK(statistics.batches == same.batches);
  CHECK(statistics.truncated == same.truncated);
  CHECK(statistics.tokens == same.tokens);
  CHECK(statistics.padded_tokens == same.padded_tokens);
  CHECK(statistics.weight_bytes == same.weight_bytes);
  CHECK(statistics.predicted_device_bytes == same.predicted_device_bytes);
  CHECK(statistics.peak_device_bytes >= statistics.weight_bytes);
  CHECK(statistics.load_seconds > 0);
  CHECK(statistics.run_seconds > 0);
  CHECK(statistics.total_seconds >= statistics.run_seconds);
  CHECK(mulciber_text_encoder_statistics(c, nullptr, &statistics) == MULCIBER_ERROR_SETTING);

  // Both devices of this test have allocated the same, and both keep their weights.
  uint64_t bytes = 1;
  REQUIRE(mulciber_trim_text_encoder(c, twins.encoder, &bytes) == MULCIBER_OK);
  CHECK(bytes == twins.twin.trim());
  CHECK(mulciber_trim_text_encoder(c, twins.encoder, nullptr) == MULCIBER_OK);
  twins.check({sizeof(MulciberEmbedInfo)}, {});
  CHECK(mulciber_trim_text_encoder(c, nullptr, &bytes) == MULCIBER_ERROR_SETTING);
  CHECK(bytes == 0);
}

TEST_CASE("Hidden states, counts of tokens and vectors of ids in C are those in C++") {
  EncoderTwins twins(small_encoder());
  MulciberContext* c = twins.c;
  MulciberResult* result = nullptr;
  const MulciberTextVector* found = nullptr;
  MulciberEmbedInfo info = {sizeof(info)};
  info.prompt = "say: ";
  EmbedOptions options;
  options.prompt = "say: ";
  REQUIRE(mulciber_text_states(c, twins.encoder, 4, kEmbeddedTexts, &info, &result, &found) ==
          MULCIBER_OK);
  const std::vector<TextStates> states = twins.twin.states(kEmbedded, options);
  std::vector<uint32_t> counts(4);
  REQUIRE(mulciber_count_embedding_tokens(c, twins.encoder, 4, kEmbeddedTexts, &info,
                                          counts.data()) == MULCIBER_OK);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(found[i].complete);
    CHECK(found[i].tokens == states[i].tokens);
    CHECK(found[i].rows == states[i].tokens);
    CHECK(found[i].columns == twins.twin.state_width());
    CHECK(std::vector(found[i].values, found[i].values + size_t{found[i].rows} *
                                                             found[i].columns) == states[i].values);
    CHECK(counts[i] == twins.twin.token_ids(kEmbedded[i], options).size());
    CHECK(counts[i] == states[i].tokens);
  }
  mulciber_destroy_result(result);

  const std::vector<uint32_t> first = twins.twin.token_ids(kEmbedded[0]),
                              last = twins.twin.token_ids(kEmbedded[3]);
  const MulciberIdSequence sequences[] = {
      {sizeof(sequences[0]), static_cast<uint32_t>(first.size()), first.data()},
      {sizeof(sequences[0]), static_cast<uint32_t>(last.size()), last.data()}};
  info = {sizeof(info)};
  info.ids = sequences;
  REQUIRE(mulciber_embed_texts(c, twins.encoder, 2, nullptr, &info, &result, &found) ==
          MULCIBER_OK);
  const std::vector<TextVector> expected =
      twins.twin.embed_ids(std::vector<std::vector<uint32_t>>{first, last});
  for (size_t i = 0; i < 2; ++i)
    CHECK(std::vector(found[i].values, found[i].values + found[i].columns) == expected[i].values);
  mulciber_destroy_result(result);

  const auto refused = [&](MulciberStatus status) {
    CHECK(status == MULCIBER_ERROR_SETTING);
    return twins.context.message();
  };
  CHECK_THAT(twins.refused(info, MULCIBER_ERROR_SETTING),
             ContainsSubstring("texts: are given beside ids"));
  CHECK_THAT(refused(mulciber_text_states(c, twins.encoder, 2, nullptr, &info, &result, &found)),
             ContainsSubstring("MulciberEmbedInfo::ids"));
  CHECK_THAT(refused(mulciber_count_embedding_tokens(c, twins.encoder, 2, kEmbeddedTexts, &info,
                                                     counts.data())),
             ContainsSubstring("MulciberEmbedInfo::ids"));
  info = {sizeof(info)};
  info.dimensions = 4;
  CHECK_THAT(
      refused(mulciber_text_states(c, twins.encoder, 4, kEmbeddedTexts, &info, &result, &found)),
      ContainsSubstring("which states lack"));
  CHECK(result == nullptr);
  CHECK(found == nullptr);
  CHECK_THAT(refused(mulciber_count_embedding_tokens(c, twins.encoder, 4, kEmbeddedTexts, nullptr,
                                                     nullptr)),
             ContainsSubstring("counts: is NULL"));
  CHECK_THAT(refused(mulciber_count_embedding_tokens(c, twins.encoder, 4, nullptr, nullptr,
                                                     counts.data())),
             ContainsSubstring("texts: is NULL"));
  CHECK_THAT(refused(mulciber_embed_texts(c, nullptr, 4, kEmbeddedTexts, nullptr, &result, &found)),
             ContainsSubstring("encoder: is NULL"));
  CHECK_THAT(
      refused(mulciber_embed_texts(c, twins.encoder, 4, kEmbeddedTexts, nullptr, nullptr, &found)),
      ContainsSubstring("result: is NULL"));
  CHECK_THAT(
      refused(mulciber_embed_texts(c, twins.encoder, 4, kEmbeddedTexts, nullptr, &result, nullptr)),
      ContainsSubstring("vectors: is NULL"));
  CHECK_THAT(refused(mulciber_embed(c, twins.encoder, 4, kEmbeddedTexts, nullptr, nullptr)),
             ContainsSubstring("vectors: is NULL"));
}

TEST_CASE("A cancelled call in C says which vectors are complete, and tasks refuse its options") {
  EncoderTwins twins(small_encoder());
  MulciberContext* c = twins.c;
  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(c, &cancel) == MULCIBER_OK);
  MulciberEmbedInfo info = {sizeof(info)};
  info.batch_texts = 2;
  info.cancel = cancel;
  info.user = cancel;
  info.on_progress = [](void* user, uint64_t, uint64_t) {
    mulciber_request_cancel(static_cast<MulciberCancel*>(user));
  };
  MulciberResult* result = nullptr;
  const MulciberTextVector* found = nullptr;
  for (const bool states : {false, true}) {
    REQUIRE((states ? mulciber_text_states : mulciber_embed_texts)(
                c, twins.encoder, 4, kEmbeddedTexts, &info, &result, &found) == MULCIBER_OK);
    uint32_t complete = 0;
    for (size_t i = 0; i < 4; ++i) {
      complete += found[i].complete;
      CHECK((found[i].values != nullptr) == (found[i].complete != 0));
      CHECK((found[i].rows > 0) == (found[i].complete != 0));
    }
    CHECK(complete == 2);
    mulciber_destroy_result(result);
    mulciber_reset_cancel(cancel);
  }
  std::vector<float> vectors(4 * twins.twin.width());
  CHECK(mulciber_embed(c, twins.encoder, 4, kEmbeddedTexts, &info, vectors.data()) ==
        MULCIBER_ERROR_SETTING);
  CHECK_THAT(twins.context.message(), ContainsSubstring("call mulciber_embed_texts()"));

  const auto refused = [&](const MulciberEmbedInfo& wrong, const std::string& field) {
    MulciberTask* task = nullptr;
    MulciberWarmup* warmup = nullptr;
    CHECK(mulciber_begin_embedding(c, twins.encoder, "iron", &wrong, &task) ==
          MULCIBER_ERROR_SETTING);
    CHECK_THAT(twins.context.message(), ContainsSubstring("MulciberEmbedInfo::" + field +
                                                          ": is of calls that compute at once"));
    CHECK(mulciber_warm_text_encoder(c, twins.encoder, &wrong, 8, &warmup) ==
          MULCIBER_ERROR_SETTING);
    CHECK_THAT(twins.context.message(), ContainsSubstring("MulciberEmbedInfo::" + field));
    CHECK((task == nullptr && warmup == nullptr));
  };
  MulciberEmbedInfo wrong = {sizeof(wrong)};
  wrong.dimensions = 4;
  refused(wrong, "dimensions");
  wrong = {sizeof(wrong)};
  wrong.batch_tokens = 4;
  refused(wrong, "batch_tokens");
  wrong = {sizeof(wrong)};
  wrong.batch_texts = 4;
  refused(wrong, "batch_texts");
  const MulciberIdSequence ids = {sizeof(ids), 0, nullptr};
  wrong = {sizeof(wrong)};
  wrong.ids = &ids;
  refused(wrong, "ids");
  wrong = {sizeof(wrong)};
  wrong.on_progress = info.on_progress;
  refused(wrong, "on_progress");
  wrong = {sizeof(wrong)};
  wrong.cancel = cancel;
  refused(wrong, "cancel");
  mulciber_destroy_cancel(cancel);

  // Pooling and normalization are options of tasks too.
  info = {sizeof(info)};
  info.pooling = MULCIBER_POOLING_MAXIMUM;
  info.set_normalize = info.normalize = 1;
  MulciberTask* task = nullptr;
  REQUIRE(mulciber_begin_embedding(c, twins.encoder, "iron", &info, &task) == MULCIBER_OK);
  twins.finish(task);
  std::vector<float> vector(twins.twin.width());
  REQUIRE(mulciber_vector(c, task, vector.data()) == MULCIBER_OK);
  EmbeddingTask same(twins.twin, "iron", {.pooling = Pooling::kMax, .normalize = true});
  finish(same);
  CHECK(vector == same.result().values);
  mulciber_destroy_task(task);
}
