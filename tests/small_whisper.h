// The small reference Whisper, whose window is one second, and sounds for it.
#pragma once

#include <cmath>
#include <filesystem>
#include <numbers>
#include <vector>

#include "mulciber/transcriber.h"
#include "tests/support.h"

namespace mulciber::tests {

/// Empty where the reference models are not there.
inline std::filesystem::path whisper_folder() {
  const std::filesystem::path fixtures = fixtures_dir();
  return fixtures.empty() ? fixtures : fixtures / "models/whisper";
}

/// A tone of rising pitch, so that no window is like another.
inline std::vector<float> rising_tone(size_t count, double rate = 16000) {
  std::vector<float> samples(count);
  for (size_t i = 0; i < count; ++i) {
    const double t = static_cast<double>(i) / rate;
    samples[i] = static_cast<float>(0.3 * std::sin(2 * std::numbers::pi * (200 + 300 * t) * t));
  }
  return samples;
}

/// Options for a single search at temperature 0, whose text is always accepted: the small model
/// knows no language.
inline TranscribeOptions one_search(uint32_t beams = 1) {
  return {.language = "en",
          .beams = beams,
          .temperatures = {0},
          .most_compression = 1e9,
          .least_log_probability = -1e9};
}

}  // namespace mulciber::tests
