// TextEncoder, Classifier and PassageReader with a small RoBERTa: vectors, labels, answers, and the
// files that sentence-transformers writes.
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/encoding/encoder_runner.h"
#include "models/encoding/passage_words.h"
#include "models/encoding/sentence_config.h"
#include "models/loading/open_files.h"
#include "mulciber/text_encoder.h"
#include "tests/catch.h"
#include "tests/changed_encoder.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kLines = {"Why did the smith melt 42 crucibles?",
                                         "The red hammer strikes the anvil.", "", "iron",
                                         "The anvil, the hammer and the forge."};

double difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

double vector_length(std::span<const float> vector) {
  double squares = 0;
  for (const float value : vector) squares += double{value} * value;
  return std::sqrt(squares);
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum / vector_length(a) / vector_length(b);
}

std::string sentence_error(const ChangedEncoder& files) {
  const Checkpoint checkpoint(files.path());
  return model_error([&] { read_sentence_config(checkpoint); }).value_or("no error");
}

}  // namespace

TEST_CASE("Vectors keep the order of the texts, whatever their lengths") {
  TextEncoder encoder(shared_handle(), small_encoder());
  std::vector<std::pair<size_t, size_t>> seen;
  EmbedOptions options;
  options.batch.batch_texts = 2;
  options.batch.progress = [&](size_t done, size_t all) { seen.emplace_back(done, all); };
  const std::vector<TextVector> together = encoder.embed(kLines, options);
  CHECK(seen == std::vector<std::pair<size_t, size_t>>{{2, 5}, {4, 5}, {5, 5}});
  REQUIRE(together.size() == kLines.size());
  const EncoderStatistics statistics = encoder.statistics();
  CHECK(statistics.texts == 5);
  CHECK(statistics.batches == 3);
  CHECK(statistics.padded_tokens >= statistics.tokens);
  CHECK(statistics.weight_bytes > 0);
  uint64_t tokens = 0;
  for (size_t i = 0; i < kLines.size(); ++i) {
    INFO(kLines[i]);
    CHECK(together[i].complete);
    CHECK_FALSE(together[i].truncated);
    CHECK(together[i].values.size() == encoder.width());
    CHECK(difference(together[i].values, encoder.embed(kLines[i]).values) < 2e-6);
    tokens += together[i].tokens;
  }
  CHECK(statistics.tokens == tokens);
  CHECK(together[2].tokens == 2);  // what the tokenizer adds to an empty text
  CHECK(encoder.embed(std::span<const std::string>()).empty());
}

TEST_CASE("A long text is cut, or refused, and its vector is that of its beginning") {
  TextEncoder encoder(shared_handle(), small_encoder());
  std::string text;
  for (int i = 0; i < 60; ++i) text += "iron ";
  const TextVector cut = encoder.embed(text);
  CHECK(cut.truncated);
  CHECK(cut.tokens == encoder.max_tokens());
  CHECK(encoder.statistics().truncated == 1);
  EmbedOptions whole;
  whole.batch.truncate = false;
  CHECK_THAT(model_error([&] { encoder.embed(text, whole); }).value_or("no error"),
             ContainsSubstring("the model takes at most 48"));
  // The last token is still the one that the tokenizer adds.
  EncoderRunner runner;
  runner.device = shared_handle();
  runner.load(open_files(fs::path(small_encoder())), {}, Capability::kEncodeText,
              EncoderTask::kNone);
  TokenizedInput input = runner.tokenize(text, nullptr);
  const std::vector<uint32_t> before = input.ids.ids;
  runner.fit(input, 12, true, "text");
  REQUIRE(input.ids.ids.size() == 12);
  CHECK(input.ids.types.size() == 12);
  CHECK(std::equal(input.ids.ids.begin(), input.ids.ids.end() - 1, before.begin()));
  CHECK(input.ids.ids.back() == before.back());
}

TEST_CASE("Of a pair the longer text is cut first") {
  EncoderRunner runner;
  runner.device = shared_handle();
  runner.load(open_files(fs::path(small_encoder())), {}, Capability::kEncodeText,
              EncoderTask::kNone);
  const std::string second = "the anvil";
  TokenizedInput input = runner.tokenize("the red hammer strikes the anvil and the forge", &second);
  const size_t first = input.first_end - input.first_begin;
  const size_t kept = input.second_end - input.second_begin;
  const size_t around = input.ids.ids.size() - first - kept;
  CHECK(around == 4);
  REQUIRE(first > kept);
  const std::vector<uint32_t> before = input.ids.ids;
  runner.fit(input, static_cast<uint32_t>(around + 2 * kept), true, "pair");
  CHECK(input.first_end - input.first_begin == kept);
  CHECK(input.second_end - input.second_begin == kept);
  const std::vector<uint32_t>& after = input.ids.ids;
  CHECK(std::equal(after.begin() + static_cast<std::ptrdiff_t>(input.first_end), after.end(),
                   before.end() - static_cast<std::ptrdiff_t>(kept + 3)));
  CHECK_THAT(model_error([&] { runner.fit(input, 4, true, "pair"); }).value_or("no error"),
             ContainsSubstring("nothing would be left"));
}

TEST_CASE("A cancelled call says what is complete") {
  TextEncoder encoder(shared_handle(), small_encoder());
  std::atomic<bool> cancel{false};
  EmbedOptions options;
  options.batch.batch_texts = 2;
  options.batch.cancel = &cancel;
  options.batch.progress = [&](size_t, size_t) { cancel = true; };
  const std::vector<TextVector> vectors = encoder.embed(kLines, options);
  CHECK(std::ranges::count_if(vectors, &TextVector::complete) == 2);
}

TEST_CASE("Cosines are those of the vectors") {
  TextEncoder encoder(shared_handle(), small_encoder());
  std::vector<TextVector> vectors = encoder.embed(kLines);
  vectors.push_back({std::vector<float>(encoder.width(), 0.0f), 0, false, true});
  const std::span queries = std::span(vectors).first(2);
  const std::vector<float> scores = encoder.cosines(queries, vectors);
  REQUIRE(scores.size() == 2 * vectors.size());
  for (size_t q = 0; q < 2; ++q) {
    for (size_t i = 0; i < kLines.size(); ++i)
      CHECK(std::abs(scores[q * vectors.size() + i] -
                     cosine(vectors[q].values, vectors[i].values)) < 2e-6);
    CHECK(scores[q * vectors.size() + kLines.size()] == 0);
  }
  vectors.back().values.pop_back();
  CHECK_THAT(model_error([&] { encoder.cosines(queries, vectors); }).value_or("no error"),
             ContainsSubstring("48 and 47 elements"));
}

TEST_CASE("The files of sentence-transformers say how texts become vectors") {
  const ChangedEncoder files;
  files.add_modules({{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", false}},
                    {"Normalize"});
  files.write("sentence_bert_config.json", {{"max_seq_length", 10}});
  files.write(
      "config_sentence_transformers.json",
      {{"prompts", {{"query", "iron "}, {"document", ""}}}, {"default_prompt_name", "document"}});
  TextEncoder plain(shared_handle(), small_encoder());
  TextEncoder encoder(shared_handle(), files.path());
  CHECK(encoder.max_tokens() == 10);
  CHECK(encoder.prompts().at("query") == "iron ");

  const TextVector vector = encoder.embed("the anvil");
  CHECK(std::abs(vector_length(vector.values) - 1) < 1e-6);
  const TextVector first = plain.embed("the anvil", {.pooling = Pooling::kFirst});
  CHECK(std::abs(cosine(vector.values, first.values) - 1) < 1e-6);
  CHECK(vector_length(first.values) > 2);
  const TextVector asked = encoder.embed("anvil", {.prompt_name = "query"});
  CHECK(difference(asked.values, encoder.embed("iron anvil").values) == 0);
  CHECK(difference(asked.values, encoder.embed("anvil", {.prompt = "iron "}).values) == 0);
  // The caller's options take precedence over the files.
  const TextVector mean =
      encoder.embed("the anvil", {.pooling = Pooling::kMean, .normalize = false});
  CHECK(difference(mean.values, plain.embed("the anvil").values) == 0);
  CHECK_THAT(
      model_error([&] { encoder.embed("a", {.prompt_name = "title"}); }).value_or("no error"),
      ContainsSubstring("document, query"));
  CHECK_THAT(
      model_error([&] { plain.embed("a", {.pooling = Pooling::kPooler}); }).value_or("no error"),
      ContainsSubstring("no pooler"));
}

TEST_CASE("What would make other vectors than sentence-transformers is refused by its key") {
  const ChangedEncoder files;
  files.add_modules({{"pooling_mode", "mean"}});
  CHECK(sentence_error(files) == "no error");
  files.add_modules({{"pooling_mode_middle_tokens", true}});
  CHECK_THAT(sentence_error(files), ContainsSubstring("'middle_tokens'; cls, lasttoken, max"));
  files.add_modules({{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", true}});
  CHECK_THAT(sentence_error(files), ContainsSubstring("one of several"));
  files.add_modules({{"pooling_mode_mean_tokens", true}, {"include_prompt", false}});
  CHECK_THAT(sentence_error(files), ContainsSubstring("include_prompt"));
  files.add_modules({{"pooling_mode_mean_tokens", true}}, {"LSTM"});
  CHECK_THAT(sentence_error(files), ContainsSubstring("'LSTM'"));
  files.write("modules.json", {{{"path", "../other"}, {"type", "Pooling"}}});
  CHECK_THAT(sentence_error(files), ContainsSubstring("outside its folder"));
  files.write("modules.json", {{{"path", "0_Transformer"}, {"type", "Transformer"}}});
  CHECK_THAT(sentence_error(files), ContainsSubstring("not beside it"));
  files.write("modules.json", Json::array());
  files.write("config_sentence_transformers.json", {{"default_prompt_name", "query"}});
  CHECK_THAT(sentence_error(files), ContainsSubstring("names no prompt"));
}

TEST_CASE("Labels have the probabilities of their logits, of texts and of pairs") {
  Classifier classifier(shared_handle(), small_encoder());
  CHECK(classifier.labels() == std::vector<std::string>{"LABEL_0", "LABEL_1"});
  const std::vector<ClassifierInput> inputs = {
      {kLines[0], std::nullopt}, {kLines[0], kLines[1]}, {kLines[1], kLines[0]}};
  const std::vector<Classification> found = classifier.classify(inputs);
  for (const Classification& one : found) {
    const double both = std::exp(one.logits[0]) + std::exp(one.logits[1]);
    CHECK(std::abs(one.probabilities[0] - std::exp(one.logits[0]) / both) < 1e-6);
    CHECK(std::abs(one.probabilities[0] + one.probabilities[1] - 1) < 1e-6);
    CHECK(one.best == (one.logits[1] > one.logits[0] ? 1u : 0u));
    CHECK(one.complete);
  }
  // <s> a </s> </s> b </s>
  CHECK(found[1].tokens == found[0].tokens + classifier.classify(kLines[1]).tokens);
  CHECK(found[1].tokens == found[2].tokens);
  CHECK(difference(found[1].logits, found[2].logits) > 1e-3);
  CHECK(difference(found[0].logits, classifier.classify(kLines[0]).logits) < 2e-6);
}

TEST_CASE("Several labels have a probability each") {
  const ChangedEncoder files;
  files.set("problem_type", "multi_label_classification");
  Classifier classifier(shared_handle(), files.path());
  CHECK(classifier.several_labels());
  const Classification found = classifier.classify(kLines[1]);
  for (size_t k = 0; k < 2; ++k)
    CHECK(std::abs(found.probabilities[k] - 1 / (1 + std::exp(-found.logits[k]))) < 1e-6);
}

TEST_CASE("Models without the head that is asked for say which class has it") {
  const std::string model = small_encoder();
  CHECK_THAT(model_error([&] { PassageReader(shared_handle(), model); }).value_or("no error"),
             ContainsSubstring("ForQuestionAnswering"));
  const ChangedEncoder files;
  files.set("architectures", {"RobertaModel"});
  CHECK_THAT(model_error([&] { Classifier(shared_handle(), files.path()); }).value_or("no error"),
             ContainsSubstring("class RobertaModel, which has no head that classifies"));
  CHECK_THAT(model_error([&] {
               TextEncoder(shared_handle(), (data_dir() / "marian").string());
             }).value_or("no error"),
             ContainsSubstring("mulciber translate"));
}

TEST_CASE("Words of a passage have the tokens of the whole") {
  const OpenModel opened = open_files(fs::path(small_encoder()));
  const std::string passage = "  The anvil, the hammer:\n42 crucibles. ";
  const PassageWords words = passage_words(*opened.tokenizer(), passage);
  std::vector<std::string> found;
  for (const auto& [begin, end] : words.words) found.push_back(passage.substr(begin, end - begin));
  CHECK(found == std::vector<std::string>{"The", "anvil", ",", "the", "hammer", ":", "42",
                                          "crucibles", "."});
  CHECK(words.word_of.size() == words.ids.size());
  CHECK(passage_words(*opened.tokenizer(), " \n ").words.empty());
}

TEST_CASE("Answers of long passages are the best of their windows") {
  const ChangedEncoder files;
  files.make_reader();
  PassageReader reader(shared_handle(), files.path());
  const std::string question = "Why melt?";
  std::string passage;
  for (const char* text : {"The red hammer strikes the anvil.", "Why did the smith melt 42 pots?",
                           "The anvil, the hammer and the forge."})
    passage += std::string(text) + "\n";
  const AnswerOptions options = {.best = 3, .longest_tokens = 6, .overlap_tokens = 7};
  const std::vector<PassageAnswer> answers = reader.answer(question, passage, options);
  REQUIRE(answers.size() == 3);

  // The expected answers are computed here window by window.
  EncoderRunner runner;
  runner.device = shared_handle();
  runner.load(open_files(files.path()), {}, Capability::kAnswer, EncoderTask::kAnswer);
  const PassageWords words = passage_words(*runner.tokenizer, passage);
  const TokenizedInput asked = runner.tokenize(question, nullptr);
  const size_t room = 48 - asked.ids.ids.size() - 2;  // </s> </s> between them, </s> at the end
  REQUIRE(words.ids.size() > room);
  double best = 0;
  std::pair<size_t, size_t> best_words;
  for (size_t first = 0; first == 0 || first + 7 < words.ids.size(); first += room - 7) {
    const size_t count = std::min(room, words.ids.size() - first);
    EncoderInput input = {asked.ids.ids, {}};
    input.ids.push_back(2);
    for (size_t i = 0; i < count; ++i) input.ids.push_back(words.ids[first + i]);
    input.ids.push_back(2);
    const auto values =
        runner.encoder->encode({{&input, 1}, EncoderOutput::kSpans, false}).values.at(0);
    const size_t at = asked.ids.ids.size() + 1;
    double starts = 0, ends = 0;
    for (size_t i = 0; i < count; ++i) {
      starts += std::exp(values[2 * (at + i)]);
      ends += std::exp(values[2 * (at + i) + 1]);
    }
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = i; j < std::min(count, i + 6); ++j) {
        const double score =
            std::exp(values[2 * (at + i)]) / starts * std::exp(values[2 * (at + j) + 1]) / ends;
        if (score <= best) continue;
        best = score;
        best_words = {words.word_of[first + i], words.word_of[first + j]};
      }
    }
  }
  CHECK(std::abs(answers[0].score - best) < 1e-6);
  CHECK(answers[0].begin == words.words[best_words.first].begin);
  CHECK(answers[0].end == words.words[best_words.second].end);
  for (size_t i = 0; i < answers.size(); ++i) {
    CHECK(answers[i].text == passage.substr(answers[i].begin, answers[i].end - answers[i].begin));
    if (i > 0) CHECK(answers[i - 1].score >= answers[i].score);
  }
  const std::string longer = passage + passage + passage + passage;
  reader.answer(question, longer, {.overlap_tokens = 0});
  const uint64_t tokens = reader.statistics().tokens;
  reader.answer(question, longer, {.overlap_tokens = 48});  // windows overlap by half at most
  CHECK(reader.statistics().tokens < 3 * tokens);
}

TEST_CASE("That a passage does not say is an answer where it may be") {
  const ChangedEncoder files;
  files.make_reader();
  PassageReader reader(shared_handle(), files.path());
  const auto empty = [](const PassageAnswer& answer) { return answer.text.empty(); };
  AnswerOptions options = {.best = 1000};
  const auto some = reader.answer("Why melt?", "The red hammer.", options);
  CHECK(std::ranges::none_of(some, empty));
  options.may_be_none = true;
  const auto all = reader.answer("Why melt?", "The red hammer.", options);
  CHECK(std::ranges::count_if(all, empty) == 1);
  CHECK(all.size() == some.size() + 1);
  CHECK(reader.answer("Why melt?", " ", options).empty());
  std::string question;
  for (int i = 0; i < 60; ++i) question += "iron ";
  CHECK_THAT(model_error([&] { reader.answer(question, "The hammer.", options); }).value_or("no"),
             ContainsSubstring("leaves no room"));
}
