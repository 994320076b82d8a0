// The search for a window's text: greedy, by beams, or sampled at a temperature.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "models/translation/memory_texts.h"

namespace mulciber {

struct SpeechSearchSettings {
  uint32_t beams = 1;       // at temperature 0
  double temperature = 0;   // above 0: tokens are sampled
  uint32_t candidates = 1;  // texts sampled at a temperature, of which the likeliest is taken
  uint64_t seed = 0;
  uint32_t max_tokens = 1;     // behind the prompt, the end included
  std::vector<uint32_t> ends;  // ids that end a text
  /// Sets the logits of ids that must not follow to -infinity. text: the ids behind the prompt so
  /// far.
  std::function<void(std::span<float> logits, std::span<const uint32_t> text)> rules;
  /// Called with each step's likeliest text so far.
  std::function<void(std::span<const uint32_t> text)> on_text;
  const std::atomic<bool>* cancel = nullptr;
  /// The prompt's token behind which `silence` has the probability that nobody speaks.
  std::optional<uint32_t> silence_at, silence;
};

struct SpeechText {
  std::vector<uint32_t> ids;   // behind the prompt, without the end
  double log_probability = 0;  // sum over the ids and the end, under the rules
  uint32_t tokens = 0;         // summands
  double no_speech = 0;        // probability
  bool cancelled = false;

  double mean_log_probability() const { return log_probability / (tokens > 0 ? tokens : 1); }
};

/// Searches a text for the window that was encoded last. prompt: the ids that the decoder is fed
/// first, one or more. Beam search ends when as many texts have ended as there are beams, and takes
/// the text of the greatest mean log probability, as the paper's implementation does. Throws
/// ModelError.
SpeechText search_speech(MemoryReader& model, std::span<const uint32_t> prompt,
                         const SpeechSearchSettings& settings);

/// log(softmax(logits)), in place; -infinity stays.
void log_softmax(std::span<float> logits);

}  // namespace mulciber
