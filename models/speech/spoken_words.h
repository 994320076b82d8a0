// The words of a window's segments, with the times at which they are spoken.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/speech/speech_model.h"
#include "models/speech/speech_rules.h"
#include "mulciber/transcriber.h"
#include "text/tokenizer.h"

namespace mulciber {

/// Fills `words` of the segments of the window that was encoded last and that begins at `start`
/// seconds. prompt: the ids before the window's text; seconds: the length of the window.
void add_spoken_words(SpeechModel& speech, const Tokenizer& tokenizer, const SpeechIds& ids,
                      std::span<const uint32_t> prompt, const std::string& language, double start,
                      double seconds, std::span<TranscriptSegment> segments);

/// Where words begin among the tokens of a text: at a piece with a space before it, and in
/// languages written without spaces at every piece that begins a whole character. Ends with the
/// number of tokens.
std::vector<size_t> word_starts(const Tokenizer& tokenizer, std::span<const uint32_t> text,
                                bool spaces);

}  // namespace mulciber
