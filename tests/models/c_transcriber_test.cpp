// Speech in C: transcripts, callbacks and refusals are those of C++.
#include "mulciber/c/transcriber.h"

#include <algorithm>
#include <string>
#include <vector>

#include "capi/handles.h"
#include "tests/c_session.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/small_whisper.h"
#include "tests/sound_file.h"
#include "tests/support.h"

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The small Whisper in C and in C++.
struct Hearing : Session {
  MulciberTranscriber* transcriber = nullptr;
  mutable Transcriber twin{device->device, whisper_folder().string()};

  Hearing() : Session(whisper_folder().string()) {
    REQUIRE(mulciber_load_transcriber(c, device, model, nullptr, &transcriber) == MULCIBER_OK);
  }
  ~Hearing() { mulciber_destroy_transcriber(transcriber); }
  std::string refused(MulciberStatus status, MulciberStatus expected) const {
    CHECK(status == expected);
    return context.message();
  }
};

/// one_search() in C.
struct OneSearch {
  double zero = 0;
  MulciberTranscribeInfo info = {sizeof(info)};

  OneSearch() {
    info.language = "en";
    info.beams = 1;
    info.temperatures = &zero;
    info.temperature_count = 1;
    info.most_compression = 1e9;
    info.least_log_probability = -1e9;
  }
  OneSearch(const OneSearch&) = delete;
};

void check_segment(const MulciberTranscriptSegment& found, const TranscriptSegment& expected) {
  CHECK(found.size == sizeof(found));
  CHECK(found.text == expected.text);
  CHECK((found.start == expected.start && found.end == expected.end));
  REQUIRE(found.id_count == expected.ids.size());
  CHECK(std::equal(expected.ids.begin(), expected.ids.end(), found.ids));
  CHECK(found.temperature == expected.temperature);
  CHECK(found.log_probability == expected.log_probability);
  CHECK(found.compression_ratio == expected.compression_ratio);
  CHECK(found.no_speech == expected.no_speech);
  REQUIRE(found.word_count == expected.words.size());
  for (size_t i = 0; i < expected.words.size(); ++i) {
    CHECK(found.words[i].size == sizeof(found.words[i]));
    CHECK(found.words[i].text == expected.words[i].text);
    CHECK(found.words[i].start == expected.words[i].start);
    CHECK(found.words[i].end == expected.words[i].end);
    CHECK(found.words[i].probability == expected.words[i].probability);
  }
}

void check_transcript(const MulciberTranscript& found, const Transcript& expected) {
  CHECK(found.size == sizeof(found));
  CHECK((found.complete != 0) == expected.complete);
  CHECK(found.text == expected.text);
  CHECK(found.language == expected.language);
  CHECK(found.language_probability == expected.language_probability);
  CHECK(found.seconds == expected.seconds);
  CHECK(found.missing_seconds == expected.missing_seconds);
  REQUIRE(found.segment_count == expected.segments.size());
  for (size_t i = 0; i < expected.segments.size(); ++i)
    check_segment(found.segments[i], expected.segments[i]);
}

/// What the callbacks of a call were told.
struct HeardCalls {
  std::vector<std::string> languages, segments, texts;
  std::vector<double> done;
  size_t maps = 0, weights = 0;

  static HeardCalls& of(void* user) { return *static_cast<HeardCalls*>(user); }
  void listen(MulciberTranscribeInfo& info) {
    info.user = this;
    info.on_language = [](void* user, const char* language, double probability, double seconds) {
      CHECK(seconds == 2.5);
      CHECK((probability > 0 && probability <= 1));
      of(user).languages.emplace_back(language);
    };
    info.on_segment = [](void* user, const MulciberTranscriptSegment* segment) {
      CHECK(of(user).languages.size() == 1);
      CHECK(segment->word_count > 0);
      of(user).segments.emplace_back(segment->text);
    };
    info.on_text = [](void* user, const char* text, size_t bytes) {
      of(user).texts.emplace_back(text, bytes);
    };
    info.on_progress = [](void* user, double done, double total) {
      CHECK(total == 2.5);
      of(user).done.push_back(done);
    };
    info.on_attention = [](void* user, const MulciberSpokenAttention* attention) {
      HeardCalls& told = of(user);
      CHECK(attention->size == sizeof(*attention));
      CHECK(attention->features != nullptr);
      CHECK(std::string(attention->maps[0]) == "heads that follow the sound");
      CHECK(attention->tokens[0] != nullptr);
      told.maps += attention->map_count;
      for (size_t i = 0; i < size_t{attention->map_count} * attention->token_count; ++i)
        told.weights += attention->weights[i * attention->positions] <= 1 ? 1 : 0;
    };
  }
};

}  // namespace

TEST_CASE("Transcripts in C are those in C++, of samples, files and bytes") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  const Hearing hearing;
  MulciberContext* c = hearing.c;
  MulciberTranscriberReport report = {sizeof(report)};
  REQUIRE(mulciber_describe_transcriber(c, hearing.transcriber, &report) == MULCIBER_OK);
  CHECK(report.sample_rate == 16000);
  CHECK(report.window_seconds == hearing.twin.window_seconds());
  CHECK(report.multilingual);
  CHECK(std::vector<std::string>(report.languages, report.languages + report.language_count) ==
        hearing.twin.languages());

  const std::vector<float> samples = rising_tone(40000);
  OneSearch search;
  search.info.word_times = VK_TRUE;
  TranscribeOptions options = one_search();
  options.word_times = true;
  MulciberResult* result = nullptr;
  const MulciberTranscript* found = nullptr;
  REQUIRE(mulciber_transcribe(c, hearing.transcriber, samples.size(), samples.data(), &search.info,
                              &result, &found) == MULCIBER_OK);
  uint64_t freed = 0;
  CHECK(mulciber_trim_transcriber(c, hearing.transcriber, &freed) == MULCIBER_OK);
  CHECK(freed > 0);
  const Transcript expected = hearing.twin.transcribe(samples, options);
  REQUIRE(!expected.segments.empty());
  check_transcript(*found, expected);
  mulciber_destroy_result(result);
  MulciberTranscribeStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_transcriber_statistics(c, hearing.transcriber, &statistics) == MULCIBER_OK);
  CHECK(statistics.windows == 3);
  CHECK(statistics.fallbacks == 0);
  CHECK(statistics.tokens == hearing.twin.statistics().tokens);
  CHECK(statistics.sound_seconds == 2.5);
  CHECK(statistics.weight_bytes == hearing.twin.statistics().weight_bytes);

  const TemporaryFolder folder;
  const std::string file = wav_file(samples, 16000);
  const std::string path = write_file(folder.path() / "tone.wav", file).string();
  const MulciberStatus read =
      mulciber_transcribe_file(c, hearing.transcriber, path.c_str(), &search.info, &result, &found);
  if (hearing.context.message().find("made without") != std::string::npos)
    MULCIBER_SKIP("built without libsndfile");
  REQUIRE(read == MULCIBER_OK);
  check_transcript(*found, expected);
  mulciber_destroy_result(result);
  REQUIRE(mulciber_transcribe_bytes(c, hearing.transcriber, file.data(), file.size(), nullptr,
                                    &search.info, &result, &found) == MULCIBER_OK);
  check_transcript(*found, expected);
  mulciber_destroy_result(result);
  REQUIRE(mulciber_transcribe(c, hearing.transcriber, 0, nullptr, nullptr, &result, &found) ==
          MULCIBER_OK);
  CHECK((found->complete && found->segment_count == 0));
  mulciber_destroy_result(result);
}

TEST_CASE("Callbacks of a transcript in C tell what those in C++ do") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  const Hearing hearing;
  MulciberContext* c = hearing.c;
  const std::vector<float> samples = rising_tone(40000);
  OneSearch search;
  search.info.language = nullptr;
  search.info.word_times = VK_TRUE;
  search.info.prompt = "The red hammer";
  HeardCalls told;
  told.listen(search.info);
  MulciberResult* result = nullptr;
  const MulciberTranscript* found = nullptr;
  REQUIRE(mulciber_transcribe(c, hearing.transcriber, samples.size(), samples.data(), &search.info,
                              &result, &found) == MULCIBER_OK);
  TranscribeOptions options = one_search();
  options.language.clear();
  options.word_times = true;
  options.prompt = "The red hammer";
  std::vector<std::string> texts;
  size_t maps = 0, rows = 0;
  options.on_text = [&](const std::string& text) { texts.push_back(text); };
  options.on_attention = [&](const SpokenAttention& attention) {
    maps += attention.maps.size();
    rows += attention.maps.size() * attention.tokens.size();
  };
  const Transcript expected = hearing.twin.transcribe(samples, options);
  check_transcript(*found, expected);
  CHECK(told.languages == std::vector<std::string>{expected.language});
  REQUIRE(told.segments.size() == expected.segments.size());
  for (size_t i = 0; i < expected.segments.size(); ++i)
    CHECK(told.segments[i] == expected.segments[i].text);
  CHECK(told.texts == texts);
  CHECK(told.done == std::vector<double>{1, 2, 2.5});
  CHECK((maps > 0 && told.maps == maps));
  CHECK(told.weights == rows);
  mulciber_destroy_result(result);

  MulciberResult* of_languages = nullptr;
  const MulciberSpokenLanguage* languages = nullptr;
  uint32_t count = 0;
  REQUIRE(mulciber_detect_language(c, hearing.transcriber, samples.size(), samples.data(), 0,
                                   &of_languages, &count, &languages) == MULCIBER_OK);
  const std::vector<SpokenLanguage> both = hearing.twin.detect_language(samples);
  REQUIRE(count == both.size());
  for (size_t i = 0; i < both.size(); ++i) {
    CHECK(languages[i].size == sizeof(languages[i]));
    CHECK(languages[i].language == both[i].language);
    CHECK(languages[i].probability == both[i].probability);
  }
  mulciber_destroy_result(of_languages);
}

TEST_CASE("Every option of a transcript in C is that of C++") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  const Hearing hearing;
  MulciberContext* c = hearing.c;
  const std::vector<float> samples = rising_tone(20000);
  const double temperatures[] = {0, 0.5};
  MulciberTranscribeInfo info = {sizeof(info)};
  info.sample_rate = 16000;
  info.language = "de";
  info.translate = info.no_timestamps = info.no_follow = VK_TRUE;
  info.beams = 2;
  info.candidates = 3;
  info.temperatures = temperatures;
  info.temperature_count = 2;
  info.most_compression = 9;
  info.least_log_probability = -1e-30;  // every text is too improbable
  info.most_no_speech = 1;
  info.seed = 7;
  MulciberResult* result = nullptr;
  const MulciberTranscript* found = nullptr;
  REQUIRE(mulciber_transcribe(c, hearing.transcriber, samples.size(), samples.data(), &info,
                              &result, &found) == MULCIBER_OK);
  const Transcript expected = hearing.twin.transcribe(samples, {.language = "de",
                                                                .translate = true,
                                                                .timestamps = false,
                                                                .beams = 2,
                                                                .candidates = 3,
                                                                .temperatures = {0, 0.5},
                                                                .most_compression = 9,
                                                                .least_log_probability = -1e-30,
                                                                .most_no_speech = 1,
                                                                .follow_previous = false,
                                                                .seed = 7});
  check_transcript(*found, expected);
  mulciber_destroy_result(result);
  MulciberTranscribeStatistics statistics = {sizeof(statistics)};
  REQUIRE(mulciber_transcriber_statistics(c, hearing.transcriber, &statistics) == MULCIBER_OK);
  CHECK(statistics.fallbacks == 2);

  MulciberCancel* cancel = nullptr;
  REQUIRE(mulciber_create_cancel(c, &cancel) == MULCIBER_OK);
  OneSearch search;
  search.info.cancel = cancel;
  search.info.user = cancel;
  search.info.on_progress = [](void* user, double, double) {
    mulciber_request_cancel(static_cast<MulciberCancel*>(user));
  };
  REQUIRE(mulciber_transcribe(c, hearing.transcriber, samples.size(), samples.data(), &search.info,
                              &result, &found) == MULCIBER_OK);
  CHECK_FALSE(found->complete);
  CHECK(found->segments[found->segment_count - 1].end < 1.01);  // of the window before
  mulciber_destroy_result(result);
  mulciber_destroy_cancel(cancel);
}

TEST_CASE("What cannot be transcribed is refused in C with the reason") {
  if (whisper_folder().empty()) MULCIBER_SKIP("no reference models (set MULCIBER_FIXTURES)");
  const Hearing hearing;
  MulciberContext* c = hearing.c;
  MulciberTranscriber* by = hearing.transcriber;
  const float sample = 0.5f;
  OneSearch search;
  MulciberResult* result = nullptr;
  const MulciberTranscript* found = nullptr;
  const auto wrong = [&](MulciberStatus status) {
    CHECK((result == nullptr && found == nullptr));
    return hearing.refused(status, MULCIBER_ERROR_MODEL);
  };
  const auto refused = [&](MulciberStatus status) {
    CHECK((result == nullptr && found == nullptr));
    return hearing.refused(status, MULCIBER_ERROR_SETTING);
  };
  const auto transcribed = [&] {
    return mulciber_transcribe(c, by, 1, &sample, &search.info, &result, &found);
  };
  search.info.language = "xx";
  CHECK_THAT(wrong(transcribed()), ContainsSubstring("'xx' is none of the model's"));
  search.info.language = "en";
  search.info.beams = 33;
  CHECK_THAT(wrong(transcribed()), ContainsSubstring("beams: are 33, not 1 to 32"));
  search.info.beams = 1;
  search.info.temperatures = nullptr;
  CHECK_THAT(refused(transcribed()), ContainsSubstring("temperatures: is NULL"));
  CHECK_THAT(refused(mulciber_transcribe(c, by, 1, nullptr, nullptr, &result, &found)),
             ContainsSubstring("samples: is NULL"));
  CHECK_THAT(refused(mulciber_transcribe(c, nullptr, 1, &sample, nullptr, &result, &found)),
             ContainsSubstring("transcriber: is NULL"));
  CHECK_THAT(refused(mulciber_transcribe(c, by, 1, &sample, nullptr, nullptr, &found)),
             ContainsSubstring("result: is NULL"));
  CHECK_THAT(refused(mulciber_transcribe(c, by, 1, &sample, nullptr, &result, nullptr)),
             ContainsSubstring("transcript: is NULL"));
  CHECK_THAT(refused(mulciber_transcribe_file(c, by, nullptr, nullptr, &result, &found)),
             ContainsSubstring("path: is NULL"));
  CHECK_THAT(
      refused(mulciber_transcribe_bytes(c, by, nullptr, 9, nullptr, nullptr, &result, &found)),
      ContainsSubstring("bytes: is NULL"));
  CHECK_THAT(
      wrong(mulciber_transcribe_bytes(c, by, "# A text", 8, "a note", nullptr, &result, &found)),
      ContainsSubstring("a note"));
  CHECK_THAT(wrong(mulciber_transcribe_file(c, by, "/no/such/sound.wav", nullptr, &result, &found)),
             ContainsSubstring("/no/such/sound.wav"));
  uint32_t count = 7;
  const MulciberSpokenLanguage* languages = nullptr;
  CHECK_THAT(wrong(mulciber_detect_language(c, by, 0, nullptr, 0, &result, &count, &languages)),
             ContainsSubstring("has no samples"));
  CHECK(count == 0);
  CHECK_THAT(refused(mulciber_detect_language(c, by, 1, &sample, 0, &result, nullptr, &languages)),
             ContainsSubstring("language_count: is NULL"));
  MulciberTranscriber* none = nullptr;
  const Session translation(bundled_model());
  CHECK(mulciber_load_transcriber(translation.c, translation.device, translation.model, nullptr,
                                  &none) == MULCIBER_ERROR_MODEL);
  CHECK_THAT(translation.context.message(), ContainsSubstring("transcribes speech"));
  CHECK(none == nullptr);
  CHECK_THAT(refused(mulciber_trim_transcriber(c, nullptr, nullptr)),
             ContainsSubstring("transcriber: is NULL"));
  mulciber_destroy_transcriber(nullptr);
}
