// Log-mel features compared with WhisperFeatureExtractor's (tools/fixtures/log_mel.py).
#include "audio/log_mel.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint.h"
#include "checkpoints/config_reader.h"
#include "tests/catch.h"
#include "tests/model_error.h"
#include "tests/reference_values.h"

namespace {

using namespace mulciber;
using namespace mulciber::tests;
using Catch::Matchers::ContainsSubstring;

LogMelOptions options_of(const char* text) {
  const Json json = parse_json(text, "preprocessor_config.json");
  return LogMelOptions::read(ConfigReader(json, "preprocessor_config.json"));
}

}  // namespace

TEST_CASE("log-mel features are those of the reference") {
  const SafetensorsFile file(data_dir() / "log_mel.safetensors");
  std::map<std::string, std::vector<double>> reference;
  for (const CheckpointTensor& tensor : file.tensors())
    reference[tensor.name] = read_values(tensor);
  const std::vector<float> samples(reference["samples"].begin(), reference["samples"].end());
  for (const uint32_t mels : {20u, 80u, 128u}) {
    INFO(mels << " filters");
    const LogMel log_mel({.mels = mels});
    const std::vector<float> features = log_mel(samples, 100);
    const std::vector<double>& wanted = reference["features" + std::to_string(mels)];
    REQUIRE(features.size() == wanted.size());
    double worst = 0;
    for (size_t i = 0; i < wanted.size(); ++i)
      worst = std::max(worst, std::abs(features[i] - wanted[i]));
    // The difference is the reference's rounding: it keeps the spectrum in 32 bits.
    CHECK(worst < 1e-5);
  }
}

TEST_CASE("silence, no sample, one sample and too many have features") {
  const LogMel log_mel({.mels = 20});
  const std::vector<float> silence = log_mel({}, 100);
  CHECK(silence == std::vector<float>(2000, (-10.0f + 4) / 4));
  const std::vector<float> zeros(16000, 0.0f);
  CHECK(log_mel(zeros, 100) == silence);
  const float one = 1;
  const std::vector<float> click = log_mel({&one, 1}, 100);
  CHECK(click.front() > silence.front());
  // Samples behind the requested frames belong to the next window.
  std::vector<float> longer(1700, 0.0f);
  longer[1650] = 1;
  CHECK(log_mel(longer, 10) == std::vector<float>(200, (-10.0f + 4) / 4));
  CHECK_THROWS_AS(log_mel({}, 1), ShapeError);
  CHECK_THROWS_AS(LogMel({.fft_length = 402}), ShapeError);
}

TEST_CASE("the extractor's configuration is read, and refused by key") {
  const LogMelOptions options = options_of(
      R"({"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128, "n_fft": 400})");
  CHECK(options.mels == 128);
  CHECK(options.hop_length == 160);
  const auto refusal = [](const char* text) {
    return model_error([&] { options_of(text); }).value_or("");
  };
  CHECK_THAT(refusal(R"({"feature_extractor_type": "Wav2Vec2FeatureExtractor"})"),
             ContainsSubstring("only WhisperFeatureExtractor is known"));
  CHECK_THAT(refusal(R"({"n_fft": 402})"), ContainsSubstring("is not a multiple of 4"));
  CHECK_THAT(refusal(R"({"hop_length": 0})"), ContainsSubstring("hop_length"));
  CHECK_THAT(refusal(R"({"feature_size": 1e9})"), ContainsSubstring("feature_size"));
}
