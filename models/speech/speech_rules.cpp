#include "models/speech/speech_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "models/speech/speech_search.h"
#include "mulciber/error.h"

#ifdef MULCIBER_ZLIB
#include <zlib.h>
#endif

namespace mulciber {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr uint32_t kLatestFirst = 50;  // latest timestamp of a first token, 1 s

std::optional<uint32_t> find_piece(const Tokenizer& tokenizer, const std::string& piece) {
  const std::optional<int32_t> id = tokenizer.id(piece);
  return id ? std::optional(static_cast<uint32_t>(*id)) : std::nullopt;
}

}  // namespace

SpeechIds::SpeechIds(const Tokenizer& tokenizer, const WhisperConfig& config)
    : end(static_cast<uint32_t>(config.generation.eos.front())),
      translate(find_piece(tokenizer, "<|translate|>")),
      transcribe(find_piece(tokenizer, "<|transcribe|>")),
      previous(find_piece(tokenizer, "<|startofprev|>")),
      no_speech(find_piece(tokenizer, "<|nospeech|>")),
      no_timestamps(find_piece(tokenizer, "<|notimestamps|>")) {
  const std::optional<uint32_t> begin = find_piece(tokenizer, "<|startoftranscript|>");
  if (!begin || *begin >= config.vocabulary)
    throw ModelError("tokenizer", "has no <|startoftranscript|>", "is it Whisper's?");
  start = *begin;
  // Older files call the piece so.
  if (!no_speech) no_speech = find_piece(tokenizer, "<|nocaptions|>");
  // The languages stand between the start and the tasks.
  const uint32_t behind = translate.value_or(start);
  for (uint32_t id = start + 1; id < behind && id < config.vocabulary; ++id) {
    const std::string_view piece = tokenizer.piece(static_cast<int32_t>(id));
    if (piece.size() > 4 && piece.starts_with("<|") && piece.ends_with("|>"))
      languages.emplace(piece.substr(2, piece.size() - 4), id);
  }
  if (no_timestamps && *no_timestamps + 1 < config.vocabulary) {
    first_timestamp = *no_timestamps + 1;
    timestamps = config.vocabulary - first_timestamp;
  }
}

SpeechRules::SpeechRules(const SpeechIds& ids, const WhisperConfig& config, bool timestamps)
    : ids_(ids),
      suppressed_(config.suppressed),
      suppressed_first_(config.suppressed_first),
      timestamps_(timestamps && ids.timestamps > 0) {
  for (const std::optional<uint32_t>& id : {std::optional(ids.start), ids.translate, ids.transcribe,
                                            ids.previous, ids.no_speech, ids.no_timestamps})
    if (id) suppressed_.push_back(*id);
  for (const auto& [code, id] : ids.languages) suppressed_.push_back(id);
}

void SpeechRules::operator()(std::span<float> logits, std::span<const uint32_t> text) const {
  for (const uint32_t id : suppressed_) logits[id] = kNever;
  if (text.empty())
    for (const uint32_t id : suppressed_first_) logits[id] = kNever;
  if (timestamps_)
    apply_timestamps(logits, text);
  else if (ids_.timestamps > 0)
    std::fill(logits.begin() + ids_.first_timestamp, logits.end(), kNever);
}

void SpeechRules::apply_timestamps(std::span<float> logits, std::span<const uint32_t> text) const {
  const std::span<float> times = logits.subspan(ids_.first_timestamp);
  const std::span<float> others = logits.first(ids_.first_timestamp);
  const size_t size = text.size();
  const bool last = size >= 1 && ids_.is_timestamp(text[size - 1]);
  const bool before = size < 2 || ids_.is_timestamp(text[size - 2]);
  if (size == 0) {
    std::fill(others.begin(), others.end(), kNever);
    if (times.size() > kLatestFirst + 1)
      std::fill(times.begin() + kLatestFirst + 1, times.end(), kNever);
    return;
  }
  if (last && before) {
    std::fill(times.begin(), times.end(), kNever);  // a text follows a pair
    return;
  }
  if (last)  // a pair is completed, or the window's text ends
    for (uint32_t id = 0; id < ids_.first_timestamp; ++id)
      if (id != ids_.end) logits[id] = kNever;
  const auto latest =
      std::find_if(text.rbegin(), text.rend(), [&](uint32_t id) { return ids_.is_timestamp(id); });
  if (latest != text.rend()) {
    // A part cannot end with the timestamp with which it began.
    const uint32_t first = *latest - ids_.first_timestamp + (last ? 0 : 1);
    std::fill(times.begin(), times.begin() + std::min<uint32_t>(first, ids_.timestamps), kNever);
  }
  // Both sides lack the divisor of a softmax, which need not be known for the comparison.
  const double likeliest = *std::max_element(others.begin(), others.end());
  double sum = 0;
  for (const float time : times) sum += std::exp(time - likeliest);
  if (sum > 1) std::fill(others.begin(), others.end(), kNever);
}

TimedTexts cut_at_timestamps(const SpeechIds& ids, std::span<const uint32_t> text, double seconds) {
  TimedTexts result = {{}, seconds};
  size_t first = 0;
  const auto add = [&](size_t end) {
    const std::span<const uint32_t> part = text.subspan(first, end - first);
    const double start = ids.is_timestamp(part.front()) ? ids.seconds(part.front()) : 0;
    const double stop = ids.is_timestamp(part.back()) ? ids.seconds(part.back()) : seconds;
    result.parts.push_back({start, stop, {part.begin(), part.end()}});
    first = end;
  };
  for (size_t i = 1; i < text.size(); ++i)
    if (ids.is_timestamp(text[i - 1]) && ids.is_timestamp(text[i])) add(i);
  const size_t size = text.size();
  const bool ends = size > 0 && ids.is_timestamp(text[size - 1]);
  if (first == 0) {
    if (size == 0) return result;
    add(size);
    // A lone timestamp of 0 carries no time.
    if (result.parts.back().end <= result.parts.back().start) result.parts.back().end = seconds;
    return result;
  }
  const bool single = ends && size >= 2 && !ids.is_timestamp(text[size - 2]);
  if (single)
    add(size);  // silence follows
  else
    result.heard = std::min(result.parts.back().end, seconds);
  return result;
}

double compression_ratio(const std::string& text) {
#ifdef MULCIBER_ZLIB
  if (text.empty()) return 0;
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::vector<Bytef> packed(size);
  compress(packed.data(), &size, reinterpret_cast<const Bytef*>(text.data()),
           static_cast<uLong>(text.size()));
  return static_cast<double>(text.size()) / static_cast<double>(size);
#else
  (void)text;
  return 0;
#endif
}

}  // namespace mulciber
