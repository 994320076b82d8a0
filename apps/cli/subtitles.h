// Writes transcripts as subtitle files and as JSON.
#pragma once

#include <span>
#include <string>

#include "mulciber/transcriber.h"

namespace mulciber::apps {

/// Hours, minutes, seconds and milliseconds: "00:01:02,345", with that separator.
std::string subtitle_time(double seconds, char separator);

/// SubRip, numbered from 1.
std::string srt_text(std::span<const TranscriptSegment> segments);
/// WebVTT. Source: W3C, "WebVTT: The Web Video Text Tracks Format". A line of a text that would end
/// its cue is joined to the line before, and <, > and & are escaped.
std::string vtt_text(std::span<const TranscriptSegment> segments);
/// One line: text, language, seconds, segments with their times, scores and words.
std::string json_text(const Transcript& transcript);

}  // namespace mulciber::apps
