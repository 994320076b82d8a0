// Whisper's texts without a device: the search, the rules on timestamps, cutting at them, times of
// words, subtitles.
#include <atomic>
#include <cmath>
#include <limits>

#include "apps/cli/subtitles.h"
#include "models/speech/speech_rules.h"
#include "models/speech/speech_search.h"
#include "models/speech/word_times.h"
#include "tests/catch.h"

namespace {

using namespace mulciber;
using Ids = std::vector<uint32_t>;

/// A model whose logits are a table's log probabilities and depend on the last token alone.
class TableModel : public MemoryReader {
 public:
  explicit TableModel(std::vector<std::vector<double>> table) : table_(std::move(table)) {}

  uint32_t vocabulary() const override { return static_cast<uint32_t>(table_.size()); }
  uint32_t context() const override { return 8; }
  void begin(uint32_t rows) override {
    texts_.assign(rows, {});
    steps = 0;
  }
  std::span<const float> prompt(std::span<const uint32_t> ids, size_t also_behind) override {
    for (Ids& text : texts_) text.assign(ids.begin(), ids.end());
    logits_.clear();
    for (const uint32_t id : {ids.back(), ids[also_behind]})
      for (const double p : table_[id]) logits_.push_back(static_cast<float>(std::log(p)));
    ++steps;
    return logits_;
  }
  std::span<const float> step(std::span<const uint32_t> tokens,
                              std::span<const uint32_t> parents) override {
    std::vector<Ids> next;
    for (size_t i = 0; i < tokens.size(); ++i) {
      next.push_back(texts_[parents[i]]);
      next.back().push_back(tokens[i]);
    }
    texts_ = std::move(next);
    logits_.clear();
    for (const Ids& text : texts_)
      for (const double p : table_[text.back()]) logits_.push_back(static_cast<float>(std::log(p)));
    ++steps;
    return logits_;
  }

  uint32_t steps = 0;

 private:
  std::vector<std::vector<double>> table_;
  std::vector<Ids> texts_;
  std::vector<float> logits_;
};

// 0 begins, 3 ends. A greedy search takes 1 first (0.55), whose continuations are worse than those
// of 2.
TableModel garden_path() {
  return TableModel({{0.01, 0.55, 0.43, 0.01},
                     {0.30, 0.25, 0.25, 0.20},
                     {0.01, 0.01, 0.01, 0.97},
                     {0.25, 0.25, 0.25, 0.25}});
}

SpeechText found_by(TableModel& model, SpeechSearchSettings settings) {
  settings.ends = {3};
  settings.max_tokens = 4;
  const uint32_t start = 0;
  return search_speech(model, {&start, 1}, settings);
}

constexpr float kGone = -std::numeric_limits<float>::infinity();

/// Ids 0 to 4 are text (4 ends), 5 is the first of ten timestamps.
struct Rules {
  SpeechIds ids;
  WhisperConfig config;
  std::vector<float> after(const Ids& text, std::vector<float> logits = {}) const {
    if (logits.empty()) logits.assign(15, 0.0f);
    SpeechRules(ids, config, true)(logits, text);
    return logits;
  }
};

}  // namespace

TEST_CASE("a search by beams finds what greedy search passes by") {
  TableModel model = garden_path();
  const SpeechText greedy = found_by(model, {.beams = 1});
  CHECK(greedy.ids == Ids{1, 0, 1, 0});
  CHECK(greedy.tokens == 4);
  const SpeechText best = found_by(model, {.beams = 2});
  CHECK(best.ids == Ids{2});
  CHECK(std::abs(best.log_probability - (std::log(0.43 * 0.97))) < 1e-4);
  CHECK(best.tokens == 2);
}

TEST_CASE("texts drawn at a temperature are those of their seed") {
  TableModel model = garden_path();
  const SpeechSearchSettings settings = {.temperature = 1, .candidates = 3, .seed = 7};
  const SpeechText one = found_by(model, settings), again = found_by(model, settings);
  CHECK(one.ids == again.ids);
  CHECK(std::isfinite(one.log_probability));
  bool differs = false;
  for (uint64_t seed = 0; seed < 20; ++seed)
    differs = differs || found_by(model, {.temperature = 1, .seed = seed}).ids != one.ids;
  CHECK(differs);
}

TEST_CASE("a search ends when it is cancelled, when the context is full, and with its rules") {
  TableModel model = garden_path();
  std::atomic<bool> cancel{true};
  CHECK(found_by(model, {.cancel = &cancel}).cancelled);
  CHECK(model.steps == 1);
  const Ids prompt = {0, 1, 0, 1, 0, 1};
  CHECK(search_speech(model, prompt, {.max_tokens = 100}).ids.size() == 2);
  const auto only_two = [](std::span<float> logits, std::span<const uint32_t> text) {
    if (text.empty()) logits[0] = logits[1] = logits[3] = kGone;
  };
  for (const uint32_t beams : {1u, 3u})
    CHECK(found_by(model, {.beams = beams, .rules = only_two}).ids == Ids{2});
}

TEST_CASE("timestamps come in pairs, in order, and before texts") {
  Rules rules{SpeechIds(), {}};
  rules.ids.start = 3;
  rules.ids.end = 4;
  rules.ids.first_timestamp = 5;
  rules.ids.timestamps = 10;
  rules.config.suppressed = {2};
  const auto allowed = [](const std::vector<float>& logits) {
    Ids ids;
    for (uint32_t i = 0; i < logits.size(); ++i)
      if (logits[i] > kGone) ids.push_back(i);
    return ids;
  };
  CHECK(allowed(rules.after({})) == Ids{5, 6, 7, 8, 9, 10, 11, 12, 13, 14});
  std::vector<float> texts(15, 0.0f);
  texts[0] = 20;  // far more probable than all timestamps together
  CHECK(allowed(rules.after({6}, texts)) == Ids{0, 1, 4});
  CHECK(allowed(rules.after({6, 0}, texts)) == Ids{0, 1, 4, 7, 8, 9, 10, 11, 12, 13, 14});
  // The timestamps together are as probable as here, so a timestamp is required.
  CHECK(allowed(rules.after({6, 0})) == Ids{7, 8, 9, 10, 11, 12, 13, 14});
  CHECK(allowed(rules.after({6, 0, 9})) == Ids{9, 10, 11, 12, 13, 14});
  texts[4] = 20;
  CHECK(allowed(rules.after({6, 0, 9}, texts)) == Ids{4, 9, 10, 11, 12, 13, 14});
  CHECK(allowed(rules.after({6, 0, 9, 9})) == Ids{0, 1, 4});
}

TEST_CASE("a window's text is cut at pairs of timestamps, and the next window begins at the last") {
  SpeechIds ids;
  ids.end = 4;
  ids.first_timestamp = 100;
  ids.timestamps = 1501;
  const TimedTexts two = cut_at_timestamps(ids, Ids{100, 1, 2, 150, 150, 3, 200, 200, 1}, 30);
  REQUIRE(two.parts.size() == 2);
  CHECK(std::abs(two.parts[0].end - 1) < 1e-9);
  CHECK(std::abs(two.parts[1].start - 1) < 1e-9);
  CHECK(two.parts[1].ids == Ids{150, 3, 200});
  CHECK(std::abs(two.heard - 2) < 1e-9);
  const TimedTexts whole = cut_at_timestamps(ids, Ids{100, 1, 150, 150, 2, 200}, 30);
  CHECK(whole.parts.size() == 2);
  CHECK(whole.heard == 30);
  const TimedTexts one = cut_at_timestamps(ids, Ids{110, 1, 2}, 12);
  REQUIRE(one.parts.size() == 1);
  CHECK(std::abs(one.parts[0].start - 0.2) < 1e-9);
  CHECK(one.parts[0].end == 12);
  CHECK(cut_at_timestamps(ids, {}, 30).parts.empty());
}

TEST_CASE("texts that repeat themselves compress well") {
  if (compression_ratio("a text") == 0) MULCIBER_SKIP("built without zlib");
  std::string again;
  for (int i = 0; i < 20; ++i) again += "Thank you for watching. ";
  CHECK(compression_ratio(again) > 2.4);
  CHECK(compression_ratio("The old house stands near the river, and nobody lives there.") < 1.5);
  CHECK(compression_ratio("") == 0);
}

TEST_CASE("the path of least cost meets each row where it is cheap") {
  // Row 0 is cheap in columns 0 and 1, row 1 in column 2, row 2 in columns 3 to 5.
  std::vector<double> costs(3 * 6, 1.0);
  for (const size_t cheap : {0u, 1u, 8u, 15u, 16u, 17u}) costs[cheap] = 0;
  CHECK(dynamic_time_warping(costs, 3, 6) == std::vector<uint32_t>{0, 2, 3});
}

TEST_CASE("tokens begin where the chosen heads attend") {
  // Two heads of one layer, 4 rows and 40 positions: head 1 attends to blocks of ten.
  const uint32_t rows = 4, positions = 40;
  std::vector<float> attention(2 * rows * positions, 1.0f / positions);
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t at = 0; at < 10; ++at) attention[(rows + row) * positions + row * 10 + at] = 0.1f;
  const std::pair<uint32_t, uint32_t> head = {0, 1};
  CHECK(align_tokens(attention, 2, rows, positions, 1, 40, {&head, 1}) ==
        std::vector<uint32_t>{0, 20, 30});
  CHECK(align_tokens(attention, 2, rows, positions, 0, 40, {&head, 1}) ==
        std::vector<uint32_t>{0, 10, 20, 30});
}

TEST_CASE("subtitles and JSON hold a transcript") {
  Transcript transcript = {.text = "Hi <all>.", .language = "en", .seconds = 3723.5};
  transcript.segments.push_back({.start = 0, .end = 3723.456, .text = "Hi\n\n<all>."});
  transcript.segments.front().words.push_back({"Hi", 0, 0.5});
  CHECK(apps::srt_text(transcript.segments) == "1\n00:00:00,000 --> 01:02:03,456\nHi  <all>.\n\n");
  CHECK(apps::vtt_text(transcript.segments) ==
        "WEBVTT\n\n00:00:00.000 --> 01:02:03.456\nHi  &lt;all&gt;.\n\n");
  const std::string json = apps::json_text(transcript);
  CHECK(json.find(R"("words":[{"end":0.5,"start":0.0,"text":"Hi"}])") != std::string::npos);
}
