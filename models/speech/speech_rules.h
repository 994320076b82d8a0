// The special ids of Whisper's texts, and the rules that its texts follow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/families/whisper_config.h"
#include "text/tokenizer.h"

namespace mulciber {

struct SpeechIds {
  uint32_t end = 0, start = 0;
  std::optional<uint32_t> translate, transcribe, previous, no_speech, no_timestamps;
  std::map<std::string, uint32_t> languages;  // by code: "en"
  uint32_t first_timestamp = 0;               // 0 s; the others follow 0.02 s apart
  uint32_t timestamps = 0;                    // how many there are

  SpeechIds() = default;
  /// Throws ModelError where the tokenizer lacks an id that every Whisper has.
  SpeechIds(const Tokenizer& tokenizer, const WhisperConfig& config);

  bool is_timestamp(uint32_t id) const { return timestamps > 0 && id >= first_timestamp; }
  /// Seconds since the window's beginning.
  double seconds(uint32_t id) const { return (id - first_timestamp) * kTimestampStep; }

  static constexpr double kTimestampStep = 0.02;
};

/// Masks the logits of ids that must not follow a text. Suppressed ids never may. Where texts hold
/// timestamps, these come in pairs except at the ends, do not decrease, begin within the first
/// second, and are chosen where together they are likelier than any other id. Source: Radford et
/// al. 2022, arXiv:2212.04356, section 4.5.
class SpeechRules {
 public:
  SpeechRules(const SpeechIds& ids, const WhisperConfig& config, bool timestamps);
  /// text: the ids behind the prompt so far.
  void operator()(std::span<float> logits, std::span<const uint32_t> text) const;

 private:
  void apply_timestamps(std::span<float> logits, std::span<const uint32_t> text) const;

  const SpeechIds& ids_;
  std::vector<uint32_t> suppressed_, suppressed_first_;
  bool timestamps_;
};

/// A part of a window's text between two timestamps.
struct TimedText {
  double start, end;  // seconds since the window's beginning
  std::vector<uint32_t> ids;
};

struct TimedTexts {
  /// Seconds of the window that the parts cover; the next window begins there.
  std::vector<TimedText> parts;
  double heard;  // seconds of the window that they cover; the next window begins there
};

/// Cuts a window's text at pairs of timestamps. seconds: the length of the window's sound.
TimedTexts cut_at_timestamps(const SpeechIds& ids, std::span<const uint32_t> text, double seconds);

/// The bytes of a text divided by those of its zlib compression: high where the text repeats
/// itself. 0 in a build without zlib, and for an empty text.
double compression_ratio(const std::string& text);

}  // namespace mulciber
