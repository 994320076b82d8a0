#include "apps/cli/subtitles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "checkpoints/json.h"

namespace mulciber::apps {
namespace {

/// Joins lines: an empty line would end a subtitle.
std::string one_line(const std::string& text, bool escape) {
  std::string result;
  for (const char c : text) {
    if (c == '\n' || c == '\r')
      result += ' ';
    else if (escape && c == '&')
      result += "&amp;";
    else if (escape && c == '<')
      result += "&lt;";
    else if (escape && c == '>')
      result += "&gt;";
    else
      result += c;
  }
  return result;
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

}  // namespace

std::string subtitle_time(double seconds, char separator) {
  const auto milliseconds = static_cast<uint64_t>(std::llround(std::max(seconds, 0.0) * 1000));
  return fmt::format("{:02}:{:02}:{:02}{}{:03}", milliseconds / 3600000, milliseconds / 60000 % 60,
                     milliseconds / 1000 % 60, separator, milliseconds % 1000);
}

std::string srt_text(std::span<const TranscriptSegment> segments) {
  std::string result;
  size_t number = 0;
  for (const TranscriptSegment& segment : segments)
    result += fmt::format("{}\n{} --> {}\n{}\n\n", ++number, subtitle_time(segment.start, ','),
                          subtitle_time(segment.end, ','), one_line(segment.text, false));
  return result;
}

std::string vtt_text(std::span<const TranscriptSegment> segments) {
  std::string result = "WEBVTT\n\n";
  for (const TranscriptSegment& segment : segments)
    result += fmt::format("{} --> {}\n{}\n\n", subtitle_time(segment.start, '.'),
                          subtitle_time(segment.end, '.'), one_line(segment.text, true));
  return result;
}

std::string json_text(const Transcript& transcript) {
  Json segments = Json::array();
  for (const TranscriptSegment& segment : transcript.segments) {
    Json one = {{"start", rounded(segment.start)},
                {"end", rounded(segment.end)},
                {"text", segment.text},
                {"ids", segment.ids},
                {"temperature", segment.temperature},
                {"log_probability", rounded(segment.log_probability)},
                {"compression_ratio", rounded(segment.compression_ratio)},
                {"no_speech", rounded(segment.no_speech)}};
    if (!segment.words.empty()) {
      Json words = Json::array();
      for (const TranscribedWord& word : segment.words)
        words.push_back(
            {{"text", word.text}, {"start", rounded(word.start)}, {"end", rounded(word.end)}});
      one["words"] = std::move(words);
    }
    segments.push_back(std::move(one));
  }
  Json object = {{"text", transcript.text},
                 {"language", transcript.language},
                 {"seconds", rounded(transcript.seconds)},
                 {"segments", std::move(segments)}};
  if (transcript.language_probability > 0)
    object["language_probability"] = rounded(transcript.language_probability);
  return json_line(object);
}

}  // namespace mulciber::apps
