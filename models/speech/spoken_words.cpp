#include "models/speech/spoken_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "models/speech/speech_search.h"
#include "models/speech/spoken_attention.h"
#include "models/speech/word_times.h"
#include "text/token_stream.h"

namespace mulciber {
namespace {

constexpr std::array<std::string_view, 6> kWithoutSpaces = {"zh", "ja", "th", "lo", "my", "yue"};
constexpr double kPositionSeconds = 0.02;  // length of an encoder position

/// Probability of an id among those of text, which stand before `end` in Whisper's vocabulary; in a
/// vocabulary where it stands behind, among all.
double text_probability(std::span<const float> logits, uint32_t id, uint32_t end) {
  const std::span<const float> among = id < end ? logits.first(end) : logits;
  std::vector<float> shares(among.begin(), among.end());
  log_softmax(shares);
  return std::exp(static_cast<double>(shares[id]));
}

std::string decoded(const Tokenizer& tokenizer, std::span<const uint32_t> ids) {
  return written_text(tokenizer, std::vector<int32_t>(ids.begin(), ids.end()));
}

}  // namespace

std::vector<size_t> word_starts(const Tokenizer& tokenizer, std::span<const uint32_t> text,
                                bool spaces) {
  std::vector<size_t> starts;
  bool whole = true;  // whether the bytes before are whole characters
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string piece = decoded(tokenizer, text.subspan(i, 1));
    const bool begins = spaces ? piece.starts_with(' ') : whole;
    if (i == 0 || begins) starts.push_back(i);
    const std::string so_far =
        decoded(tokenizer, text.subspan(starts.back(), i + 1 - starts.back()));
    whole = so_far.find("\xEF\xBF\xBD") == std::string::npos;
  }
  starts.push_back(text.size());
  return starts;
}

void add_spoken_words(SpeechModel& speech, const Tokenizer& tokenizer, const SpeechIds& ids,
                      std::span<const uint32_t> prompt, const std::string& language, double start,
                      double seconds, std::span<TranscriptSegment> segments) {
  const WhisperConfig& config = speech.config();
  // The text is fed without timestamps, behind the token that asks for none.
  std::vector<uint32_t> text, fed(std::find(prompt.begin(), prompt.end(), ids.start), prompt.end());
  for (const TranscriptSegment& segment : segments)
    for (const uint32_t id : segment.ids)
      if (!ids.is_timestamp(id) && id != ids.end) text.push_back(id);
  if (ids.no_timestamps && fed.back() != *ids.no_timestamps) fed.push_back(*ids.no_timestamps);
  if (text.empty() || fed.size() + text.size() > config.context) return;
  const size_t before = fed.size();
  fed.insert(fed.end(), text.begin(), text.end());
  const auto used = static_cast<uint32_t>(seconds / kPositionSeconds);
  std::vector<float> logits;
  const std::vector<float> attention = speech.cross_attention(fed, &logits);
  // Positions at which every token of the text, and its end, begin.
  const std::vector<uint32_t> begins = align_tokens(
      attention, config.decoder_heads, static_cast<uint32_t>(fed.size()), config.positions,
      static_cast<uint32_t>(before - 1), used, alignment_heads(config));

  const bool spaces =
      std::find(kWithoutSpaces.begin(), kWithoutSpaces.end(), language) == kWithoutSpaces.end();
  size_t first = 0;  // index of a token of the window's text
  for (TranscriptSegment& segment : segments) {
    std::vector<uint32_t> own;
    for (const uint32_t id : segment.ids)
      if (!ids.is_timestamp(id) && id != ids.end) own.push_back(id);
    const std::vector<size_t> starts = word_starts(tokenizer, own, spaces);
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
      std::string word =
          decoded(tokenizer, std::span(own).subspan(starts[i], starts[i + 1] - starts[i]));
      if (word.starts_with(' ')) word.erase(0, 1);
      if (word.empty()) continue;
      const size_t from = first + starts[i], to = first + starts[i + 1];
      double sum = 0;
      for (size_t token = from; token < to; ++token)
        // The step that chose a token was fed the token before it.
        sum += text_probability(
            std::span(logits).subspan((before - 1 + token) * config.vocabulary, config.vocabulary),
            text[token], ids.end);
      segment.words.push_back({.text = std::move(word),
                               .start = start + begins[from] * kPositionSeconds,
                               .end = start + begins[to] * kPositionSeconds,
                               .probability = sum / static_cast<double>(to - from)});
    }
    first += own.size();
  }
}

}  // namespace mulciber
