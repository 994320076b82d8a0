// Reading sound files: formats, rates, channels, and unusable files.
#include "audio/sound_file.h"

#include <sndfile.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/sound_file.h"

namespace {

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

/// A tone of 440 Hz, (frames, channels): every channel has its own amplitude, of mean 0.5.
std::vector<float> tone(uint32_t rate, size_t frames, uint32_t channels = 1) {
  std::vector<float> samples(frames * channels);
  for (size_t i = 0; i < frames; ++i) {
    for (uint32_t c = 0; c < channels; ++c) {
      const double amplitude = (c + 0.5) / channels;
      samples[i * channels + c] = static_cast<float>(
          amplitude * std::sin(2 * std::numbers::pi * 440 * static_cast<double>(i) / rate));
    }
  }
  return samples;
}

Sound read_whole(const std::string& file, const SoundLimits& limits = {}) {
  return read_sound(std::as_bytes(std::span(file)), "tone", 16000, limits);
}

std::vector<float> read_bytes(const std::string& file, const SoundLimits& limits = {}) {
  return read_whole(file, limits).samples;
}

/// The root of the mean squared difference from the tone at 16 kHz, away from the ends, at the best
/// shift up to most_shift samples: lossy encoders delay.
double distance_from_tone(std::span<const float> samples, size_t most_shift) {
  const std::vector<float> wanted = tone(16000, samples.size());
  double best = std::numeric_limits<double>::infinity();
  for (size_t shift = 0; shift <= most_shift; ++shift) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 2000; i + 2000 + most_shift < samples.size(); ++i, ++count)
      sum += std::pow(samples[i + shift] - wanted[i], 2);
    best = std::min(best, std::sqrt(sum / static_cast<double>(count)));
  }
  return best;
}

/// The tone, written by libsndfile.
std::string encoded(const std::filesystem::path& folder, int format, uint32_t rate) {
  const std::filesystem::path path = folder / "tone";
  SF_INFO info = {};
  info.samplerate = static_cast<int>(rate);
  info.channels = 1;
  info.format = format;
  const std::vector<float> samples = tone(rate, rate);
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  REQUIRE(file != nullptr);
  CHECK(sf_writef_float(file, samples.data(), rate) == rate);
  sf_close(file);
  return read_file(path);
}

}  // namespace

TEST_CASE("WAV, FLAC, Ogg and MP3 files give the tone that was written") {
  const TemporaryFolder folder;
  struct Case {
    const char* name;
    int format;
    double distance;    // a lossy encoder's; with 16 bits half a step
    size_t most_shift;  // samples
  };
  const Case cases[] = {
      {"WAV", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 2e-5, 0},
      {"WAV, float", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 1e-7, 0},
      {"FLAC", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 2e-5, 0},
      {"Vorbis", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 2e-2, 0},
      {"Opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 2e-2, 0},
      {"MP3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 2e-2, 2000},
  };
  for (const Case& one : cases) {
    INFO(one.name);
    const std::vector<float> samples = read_bytes(encoded(folder.path(), one.format, 16000));
    CHECK(samples.size() >= 16000);
    CHECK(distance_from_tone(samples, one.most_shift) < one.distance);
  }
}

TEST_CASE("sounds of other rates and of many channels become 16 kHz of one") {
  for (const uint32_t rate : {8000u, 11025u, 44100u, 48000u, 192'000u}) {
    INFO(rate);
    const std::vector<float> samples = read_bytes(wav_file(tone(rate, rate), rate));
    CHECK(std::abs(static_cast<int>(samples.size()) - 16000) <= 1);
    CHECK(distance_from_tone(samples, 0) < 1e-4);
  }
  for (const uint16_t channels : {2, 8}) {
    INFO(channels);
    const std::vector<float> samples =
        read_bytes(wav_file(tone(16000, 16000, channels), 16000, channels));
    CHECK(samples.size() == 16000);
    CHECK(distance_from_tone(samples, 0) < 1e-6);
  }
}

TEST_CASE("samples in memory are resampled as files are") {
  for (const uint32_t rate : {8000u, 44100u, 48000u}) {
    INFO(rate);
    const std::vector<float> samples = resampled(tone(rate, rate), rate, 16000);
    CHECK(std::abs(static_cast<int>(samples.size()) - 16000) <= 1);
    CHECK(distance_from_tone(samples, 0) < 1e-4);
  }
  CHECK(resampled({}, 48000, 16000).empty());
  const std::vector<float> same = tone(16000, 100);
  CHECK(resampled(same, 16000, 16000) == same);
  for (const uint32_t rate : {0u, 999u, 400'000u})
    CHECK_THAT(model_error([&] { resampled(same, rate, 16000); }).value_or(""),
               ContainsSubstring("Hz, 1000 to 384000 Hz are read"));
}

TEST_CASE("files of no sample and of one are read") {
  CHECK(read_bytes(wav_file({}, 16000)).empty());
  const float one = 0.25f;
  CHECK(read_bytes(wav_file({&one, 1}, 16000)) == std::vector<float>{0.25f});
  // The header's count is not trusted.
  std::string cut = wav_file(tone(16000, 1000), 16000);
  cut.resize(cut.size() - 400);
  CHECK(read_bytes(cut).size() == 900);
}

TEST_CASE("a file that is shorter than its header says tells by how much") {
  std::string file = wav_file(tone(16000, 16000), 16000);
  CHECK(read_whole(file).missing_seconds == 0);
  const std::string cut = file.substr(0, file.size() - 32000);
  CHECK(read_whole(cut).samples.size() == 8000);
  CHECK(read_whole(cut).missing_seconds == 0.5);
  // The file ends where its data would begin; then a chunk of an unknown kind comes before the
  // data.
  CHECK(read_whole(file.substr(0, 44)).missing_seconds == 1);
  file.insert(36, std::string("LIST\5\0\0\0abcde\0", 14));
  CHECK(read_whole(file).missing_seconds == 0);
  CHECK(read_whole(file.substr(0, file.size() - 6400)).missing_seconds == 0.1);
  // Programs that do not know the length beforehand write this header.
  std::string streamed = cut;
  for (size_t i = 40; i < 44; ++i) streamed[i] = '\xff';
  CHECK(read_whole(streamed).missing_seconds == 0);
}

TEST_CASE("a sound that cannot be used ends in one error that says why") {
  const auto refusal = [](const std::string& file, const SoundLimits& limits = {}) {
    return model_error([&] { read_bytes(file, limits); }).value_or("");
  };
  CHECK_THAT(refusal(""), ContainsSubstring("tone: not a sound file in WAV, FLAC, Ogg or MP3"));
  CHECK_THAT(refusal("# A text\n"), ContainsSubstring("not a sound file"));
  CHECK_THAT(refusal("RIFF"), ContainsSubstring("tone: libsndfile: "));
  CHECK_THAT(refusal("fLaC and nothing more"), ContainsSubstring("tone: libsndfile: "));
  std::vector<float> bad = tone(16000, 9000);
  bad[8500] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(refusal(wav_file(bad, 16000)), ContainsSubstring("tone: sample 8500 is nan"));
  bad[8500] = std::numeric_limits<float>::infinity();
  CHECK_THAT(refusal(wav_file(bad, 16000)), ContainsSubstring("tone: sample 8500 is inf"));
  bad[8500] = 1e30f;
  CHECK_THAT(refusal(wav_file(bad, 16000)), ContainsSubstring("tone: sample 8500 is 1e+30"));
  CHECK_THAT(refusal(wav_file(tone(16000, 4, 65), 16000, 65)),
             ContainsSubstring("65 channels, at most 64 are read"));
  CHECK_THAT(refusal(wav_file(tone(16000, 40), 999)),
             ContainsSubstring("a sample rate of 999 Hz, 1000 to 384000 Hz are read"));
  CHECK_THAT(refusal(wav_file(tone(16000, 40), 400'000)), ContainsSubstring("400000 Hz"));
  CHECK_THAT(refusal(wav_file(tone(16000, 40'000), 16000), {.max_seconds = 2}),
             ContainsSubstring("longer than 2 seconds"));
  const auto absent = model_error([] { read_sound("/nowhere/tone.wav", 16000); });
  CHECK_THAT(absent.value_or(""), ContainsSubstring("/nowhere/tone.wav"));
}
