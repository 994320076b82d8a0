#include "models/speech/spoken_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/token_stream.h"

namespace mulciber {
namespace {

using Heads = std::vector<std::pair<uint32_t, uint32_t>>;

std::string shown(const Tokenizer& tokenizer, const SpeechIds& ids, uint32_t id) {
  if (ids.is_timestamp(id)) return fmt::format("<|{:.2f}|>", ids.seconds(id));
  const auto one = static_cast<int32_t>(id);
  return written_text(tokenizer, {&one, 1});
}

}  // namespace

Heads alignment_heads(const WhisperConfig& config) {
  if (!config.alignment_heads.empty()) return config.alignment_heads;
  Heads all;
  for (uint32_t layer = config.decoder_layers / 2; layer < config.decoder_layers; ++layer)
    for (uint32_t head = 0; head < config.decoder_heads; ++head) all.emplace_back(layer, head);
  return all;
}

SpokenAttention spoken_attention(SpeechModel& speech, const Tokenizer& tokenizer,
                                 const SpeechIds& ids, std::span<const uint32_t> prompt,
                                 std::span<const uint32_t> text, std::span<const float> features,
                                 const WindowTimes& times) {
  const WhisperConfig& config = speech.config();
  std::vector<uint32_t> fed(prompt.begin(), prompt.end());
  fed.insert(fed.end(), text.begin(), text.end() - 1);
  const std::vector<float> attention = speech.cross_attention(fed, nullptr);

  SpokenAttention result = {.start = times.start, .seconds = times.seconds};
  for (const uint32_t id : text) result.tokens.push_back(shown(tokenizer, ids, id));
  result.position_seconds = SpeechIds::kTimestampStep;
  const auto heard = static_cast<uint32_t>(std::ceil(times.seconds / result.position_seconds));
  result.positions = std::clamp(heard, 1u, config.positions);
  result.mels = config.mels;
  result.frame_seconds = times.frame_seconds;
  result.features.assign(features.begin(), features.end());
  const auto add = [&](const std::string& name, const Heads& heads) {
    result.maps.push_back(name);
    for (size_t token = 0; token < text.size(); ++token) {
      // The step that chose a token was fed the token before it.
      const size_t row = prompt.size() - 1 + token;
      for (uint32_t position = 0; position < result.positions; ++position) {
        double sum = 0;
        for (const auto& [layer, head] : heads)
          sum += attention[((uint64_t{layer} * config.decoder_heads + head) * fed.size() + row) *
                               config.positions +
                           position];
        result.weights.push_back(static_cast<float>(sum / static_cast<double>(heads.size())));
      }
    }
  };
  add("heads that follow the sound", alignment_heads(config));
  for (const auto& [layer, head] : config.alignment_heads)
    add(fmt::format("layer {}, head {}", layer + 1, head + 1), {{layer, head}});
  for (uint32_t layer = 0; layer < config.decoder_layers; ++layer) {
    Heads heads;
    for (uint32_t head = 0; head < config.decoder_heads; ++head) heads.emplace_back(layer, head);
    add(fmt::format("layer {}, mean of its heads", layer + 1), heads);
  }
  return result;
}

}  // namespace mulciber
