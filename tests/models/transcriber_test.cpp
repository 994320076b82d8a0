// Transcriber over the small reference Whisper, whose window is one second.
#include "mulciber/transcriber.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "models/loading/open_files.h"
#include "models/speech/speech_model.h"
#include "tests/catch.h"
#include "tests/device.h"
#include "tests/model_error.h"
#include "tests/small_whisper.h"
#include "tests/sound_file.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("sounds become transcripts, window by window") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  Transcriber transcriber(shared_handle(), whisper_folder().string());
  CHECK(transcriber.sample_rate() == 16000);
  CHECK(std::abs(transcriber.window_seconds() - 1) < 1e-9);
  CHECK(transcriber.languages() == std::vector<std::string>{"de", "en"});

  const std::vector<float> samples = rising_tone(40000);
  std::vector<double> done;
  size_t segments = 0, texts = 0;
  TranscribeOptions options = one_search();
  options.word_times = true;
  options.progress = [&](double seconds, double total) {
    CHECK(std::abs(total - 2.5) < 1e-9);
    done.push_back(seconds);
  };
  options.on_segment = [&](const TranscriptSegment&) { ++segments; };
  options.on_text = [&](const std::string&) { ++texts; };
  const Transcript transcript = transcriber.transcribe(samples, options);
  CHECK(transcript.complete);
  CHECK(std::abs(transcript.seconds - 2.5) < 1e-9);
  CHECK(done == std::vector<double>{1, 2, 2.5});
  CHECK(segments == transcript.segments.size());
  REQUIRE(segments > 0);
  CHECK(texts > segments);
  const TranscribeStatistics& statistics = transcriber.statistics();
  CHECK(statistics.windows == 3);
  CHECK(statistics.fallbacks == 0);
  CHECK(statistics.tokens > 0);
  CHECK(statistics.weight_bytes > 0);
  for (const TranscriptSegment& segment : transcript.segments) {
    CHECK(segment.end > segment.start);
    double before = segment.start;
    for (const TranscribedWord& word : segment.words) {
      CHECK((word.probability > 0 && word.probability <= 1));
      CHECK(word.start >= before);
      CHECK(word.end >= word.start);
      CHECK(word.end <= segment.end + 1e-9);
      before = word.start;
    }
  }
  // A second call gives the same text; so do a list and a file.
  CHECK(transcriber.transcribe(samples, one_search()).text == transcript.text);
  const std::vector<std::vector<float>> sounds = {samples, {}, samples};
  const std::vector<Transcript> all = transcriber.transcribe(sounds, one_search());
  REQUIRE(all.size() == 3);
  CHECK(all[2].text == transcript.text);
  CHECK(all[1].text.empty());
  const TemporaryFolder folder;
  std::string file = wav_file(samples, 16000);
  const auto path = write_file(folder.path() / "tone.wav", file);
  const Transcript of_file = transcriber.transcribe_file(path.string(), one_search());
  CHECK(of_file.text == transcript.text);
  CHECK(of_file.missing_seconds == 0);
  file.resize(file.size() - 32000);
  const auto cut = write_file(folder.path() / "cut.wav", file);
  CHECK(transcriber.transcribe_file(cut.string(), one_search()).missing_seconds == 0.5);
  const auto bytes = std::as_bytes(std::span(file));
  const Transcript of_bytes = transcriber.transcribe_file(bytes, "the tone", one_search());
  CHECK(of_bytes.missing_seconds == 0.5);
  CHECK(of_bytes.seconds == 2);
  CHECK_THAT(
      model_error([&] { transcriber.transcribe_file(bytes.first(44), "the tone"); }).value_or(""),
      ContainsSubstring("the tone: is cut short"));
  // Without a given language the first window decides it.
  TranscribeOptions open = one_search();
  open.language.clear();
  const Transcript detected = transcriber.transcribe(samples, open);
  CHECK((detected.language == "en" || detected.language == "de"));
  CHECK(detected.language_probability >= 0.5);
  std::vector<SpokenLanguage> told;
  open.on_language = [&](const SpokenLanguage& language, double seconds) {
    told.push_back(language);
    CHECK(seconds == 2.5);
  };
  open.on_segment = [&](const TranscriptSegment&) { CHECK(told.size() == 1); };
  transcriber.transcribe(samples, open);
  REQUIRE(told.size() == 1);
  CHECK(told[0].language == detected.language);
  CHECK(told[0].probability == detected.language_probability);
  // Where the text is improbable a higher temperature is tried, and the same seed gives the same
  // text.
  TranscribeOptions drawn = one_search();
  drawn.temperatures = {0, 0.5};
  drawn.least_log_probability = 0;
  drawn.most_no_speech = 1;
  const Transcript once = transcriber.transcribe(samples, drawn);
  CHECK(transcriber.statistics().fallbacks == 3);
  CHECK(transcriber.transcribe(samples, drawn).text == once.text);
}

TEST_CASE("the languages of a sound are those that its transcript begins with") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  Transcriber transcriber(shared_handle(), whisper_folder().string());
  TranscribeOptions options = one_search();
  options.language.clear();
  for (const size_t count : {size_t{1}, size_t{12000}, size_t{16000}}) {
    INFO(count << " samples");
    const std::vector<float> samples = rising_tone(count);
    const std::vector<SpokenLanguage> found = transcriber.detect_language(samples);
    REQUIRE(found.size() == 2);
    CHECK(std::abs(found[0].probability + found[1].probability - 1) < 1e-6);
    CHECK(found[0].probability >= found[1].probability);
    const Transcript transcript = transcriber.transcribe(samples, options);
    CHECK(transcript.language == found[0].language);
    CHECK(transcript.language_probability == found[0].probability);
  }
  // The first window decides.
  const std::vector<float> whole = rising_tone(40000);
  const auto first = transcriber.detect_language(whole);
  CHECK(transcriber.detect_language(std::span(whole).first(16000))[0].probability ==
        first[0].probability);
  CHECK_THAT(model_error([&] { transcriber.detect_language({}); }).value_or(""),
             ContainsSubstring("has no samples"));
}

TEST_CASE("samples of other rates are resampled") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  Transcriber transcriber(shared_handle(), whisper_folder().string());
  TranscribeOptions options = one_search();
  options.sample_rate = 999;
  const auto refusal =
      model_error([&] { transcriber.transcribe(rising_tone(100), options); }).value_or("");
  if (refusal.find("made without") != std::string::npos)
    MULCIBER_SKIP("built without libsamplerate");
  CHECK_THAT(refusal, ContainsSubstring("999 Hz"));
  options.sample_rate = 48000;
  const Transcript found = transcriber.transcribe(rising_tone(72000, 48000), options);
  CHECK(found.complete);
  CHECK(std::abs(found.seconds - 1.5) < 1e-3);
  options.sample_rate = 16000;
  CHECK(transcriber.transcribe(rising_tone(24000), options).text ==
        transcriber.transcribe(rising_tone(24000), one_search()).text);
  const auto languages = transcriber.detect_language(rising_tone(36000, 48000), 48000);
  const auto same = transcriber.detect_language(rising_tone(12000));
  CHECK(std::abs(languages[0].probability - same[0].probability) < 0.05);
}

TEST_CASE("maps say where in the sound each token came from") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  Transcriber transcriber(shared_handle(), whisper_folder().string());
  TranscribeOptions options = one_search();
  std::vector<SpokenAttention> windows;
  options.on_attention = [&](const SpokenAttention& attention) { windows.push_back(attention); };
  const Transcript transcript = transcriber.transcribe(rising_tone(24000), options);
  REQUIRE(windows.size() == 2);
  CHECK(windows[0].start == 0);
  CHECK(std::abs(windows[1].start + windows[1].seconds - 1.5) < 1e-9);
  for (const SpokenAttention& window : windows) {
    const size_t rows = window.maps.size() * window.tokens.size();
    REQUIRE(window.weights.size() == rows * window.positions);
    CHECK(window.features.size() ==
          static_cast<size_t>(std::lround(window.seconds / window.frame_seconds)) * window.mels);
    CHECK(std::abs(window.positions * window.position_seconds - window.seconds) < 0.021);
    for (size_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (uint32_t i = 0; i < window.positions; ++i)
        sum += window.weights[row * window.positions + i];
      // In a whole window the positions have all the weight.
      CHECK(sum < 1 + 1e-4);
      if (window.seconds == 1) CHECK(sum > 1 - 1e-4);
    }
  }
}

TEST_CASE("a prompt in one pass gives what its tokens give one by one") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  const OpenModel opened = open_files(whisper_folder());
  const std::unique_ptr<Model> model = load_model(shared_device(), opened);
  SpeechModel& speech = *model->hears();
  const WhisperConfig& config = speech.config();
  std::vector<float> features(uint64_t{config.frames()} * config.mels);
  for (size_t i = 0; i < features.size(); ++i)
    features[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i)));
  speech.encode(features);
  // The prompt has more tokens than the shortest program takes, or a single one; a step of three
  // texts follows.
  const auto length = static_cast<uint32_t>(GENERATE(1, 6));
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < length; ++i) ids.push_back((i * 7 + 3) % config.vocabulary);
  const std::vector<uint32_t> next = {2, 9, 4}, parents = {0, 1, 2}, turned = {2, 2, 0};
  std::vector<std::vector<float>> wanted, found;
  const auto take = [&](std::vector<std::vector<float>>& to, std::span<const float> logits) {
    to.emplace_back(logits.begin(), logits.end());
  };
  speech.begin(3);
  for (const uint32_t id : ids) {
    const std::vector<uint32_t> same(3, id);
    take(wanted, speech.step(same, parents));
    wanted.back().resize(config.vocabulary);  // all rows are equal
  }
  take(wanted, speech.step(next, parents));
  take(wanted, speech.step(next, turned));
  // A full pass has the same logits behind every token.
  std::vector<float> logits;
  speech.cross_attention(ids, &logits);
  REQUIRE(logits.size() == ids.size() * config.vocabulary);
  for (size_t i = 0; i < ids.size(); ++i)
    for (size_t k = 0; k < config.vocabulary; ++k)
      CHECK(std::abs(double{logits[i * config.vocabulary + k]} - double{wanted[i][k]}) < 1e-4);
  speech.begin(3);
  const std::span<const float> both = speech.prompt(ids, 0);
  take(found, both.subspan(config.vocabulary));
  take(found, both.first(config.vocabulary));
  take(found, speech.step(next, parents));
  take(found, speech.step(next, turned));
  wanted = {wanted[0], wanted[length - 1], wanted[length], wanted[length + 1]};
  for (size_t i = 0; i < found.size(); ++i) {
    REQUIRE(found[i].size() == wanted[i].size());
    double largest = 0;
    for (size_t k = 0; k < found[i].size(); ++k)
      largest = std::max(largest, std::abs(double{found[i][k]} - double{wanted[i][k]}));
    INFO("step " << i);
    CHECK(largest < 1e-4);
  }
}

TEST_CASE("a search by beams is at least as likely as greedy search") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  Transcriber transcriber(shared_handle(), whisper_folder().string());
  const std::vector<float> samples = rising_tone(16000);
  const Transcript greedy = transcriber.transcribe(samples, one_search(1));
  const Transcript beams = transcriber.transcribe(samples, one_search(5));
  REQUIRE(!greedy.segments.empty());
  REQUIRE(!beams.segments.empty());
  CHECK(beams.segments[0].log_probability >= greedy.segments[0].log_probability - 1e-4);
  const Transcript again = transcriber.transcribe(samples, one_search(5));
  CHECK(again.segments[0].ids == beams.segments[0].ids);
}

TEST_CASE("hardly any sound, and none that is one") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  Transcriber transcriber(shared_handle(), whisper_folder().string());
  const Transcript nothing = transcriber.transcribe(std::vector<float>(), one_search());
  CHECK(nothing.complete);
  CHECK(nothing.segments.empty());
  const std::vector<float> one = {0.5f};
  CHECK(transcriber.transcribe(one, one_search()).complete);
  std::vector<float> bad = rising_tone(1000);
  bad[10] = std::numeric_limits<float>::quiet_NaN();
  const auto refusal = [&](const std::vector<float>& samples, const TranscribeOptions& options) {
    return model_error([&] { transcriber.transcribe(samples, options); }).value_or("");
  };
  CHECK_THAT(refusal(bad, one_search()), ContainsSubstring("sample 10 is nan"));
  TranscribeOptions options = one_search();
  options.language = "xx";
  CHECK_THAT(refusal(one, options), ContainsSubstring("'xx' is none of the model's"));
  options = one_search(33);
  CHECK_THAT(refusal(one, options), ContainsSubstring("beams: are 33, not 1 to 32"));
  options = one_search();
  options.temperatures = {};
  CHECK_THAT(refusal(one, options), ContainsSubstring("temperatures: are none"));
  const auto wrong =
      model_error([&] { Transcriber(shared_handle(), (fixtures_dir() / "models/bert").string()); });
  CHECK(wrong.has_value());

  std::atomic<bool> cancel{true};
  options = one_search();
  options.cancel = &cancel;
  CHECK_FALSE(transcriber.transcribe(rising_tone(40000), options).complete);
}
