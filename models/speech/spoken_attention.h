// The part of a window of sound from which each token of its text came.
#pragma once

#include <cstdint>
#include <span>

#include "models/speech/speech_model.h"
#include "models/speech/speech_rules.h"
#include "mulciber/transcriber.h"
#include "text/tokenizer.h"

namespace mulciber {

/// The alignment heads, which follow the sound, as (layer, head): those in the model's files, or
/// else all of the upper half of the layers.
std::vector<std::pair<uint32_t, uint32_t>> alignment_heads(const WhisperConfig& config);

struct WindowTimes {
  double start, seconds, frame_seconds;
};

/// The attention maps of a text of the window that was encoded last. prompt: the ids before the
/// text; text: its ids, at least one; features: (frames, mels) of the part that holds sound. Maps:
/// the mean of the alignment heads, each of these heads where the files name them, and the mean of
/// every layer.
SpokenAttention spoken_attention(SpeechModel& speech, const Tokenizer& tokenizer,
                                 const SpeechIds& ids, std::span<const uint32_t> prompt,
                                 std::span<const uint32_t> text, std::span<const float> features,
                                 const WindowTimes& times);

}  // namespace mulciber
