// C functions for speech to text.
#include "mulciber/c/transcriber.h"

#include "capi/handles.h"
#include "capi/result.h"
#include "capi/speech_handles.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

std::vector<MulciberTranscribedWord> shown_words(const std::vector<TranscribedWord>& found) {
  std::vector<MulciberTranscribedWord> words;
  for (const TranscribedWord& word : found)
    words.push_back({.size = sizeof(MulciberTranscribedWord),
                     .text = word.text.c_str(),
                     .start = word.start,
                     .end = word.end,
                     .probability = word.probability});
  return words;
}

/// Both must outlive the result.
MulciberTranscriptSegment shown_segment(const TranscriptSegment& found,
                                        const std::vector<MulciberTranscribedWord>& words) {
  return {.size = sizeof(MulciberTranscriptSegment),
          .id_count = static_cast<uint32_t>(found.ids.size()),
          .ids = found.ids.data(),
          .text = found.text.c_str(),
          .start = found.start,
          .end = found.end,
          .temperature = found.temperature,
          .log_probability = found.log_probability,
          .compression_ratio = found.compression_ratio,
          .no_speech = found.no_speech,
          .word_count = static_cast<uint32_t>(words.size()),
          .words = words.data()};
}

/// A transcript, and its form in C, which points into this object.
struct ShownTranscript {
  Transcript found;
  std::vector<std::vector<MulciberTranscribedWord>> words = {};
  std::vector<MulciberTranscriptSegment> segments = {};
  MulciberTranscript shown = {};

  const MulciberTranscript* show() {
    words.reserve(found.segments.size());
    for (const TranscriptSegment& segment : found.segments) {
      words.push_back(shown_words(segment.words));
      segments.push_back(shown_segment(segment, words.back()));
    }
    shown = {.size = sizeof(MulciberTranscript),
             .complete = found.complete,
             .text = found.text.c_str(),
             .language = found.language.c_str(),
             .language_probability = found.language_probability,
             .seconds = found.seconds,
             .missing_seconds = found.missing_seconds,
             .segment_count = static_cast<uint32_t>(segments.size()),
             .segments = segments.data()};
    return &shown;
  }
};

struct ShownLanguages {
  std::vector<SpokenLanguage> found;
  std::vector<MulciberSpokenLanguage> list;
};

std::vector<const char*> spoken_text_pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

void give_spoken_attention(const SpokenAttention& found, const MulciberTranscribeInfo& info) {
  const std::vector<const char*> tokens = spoken_text_pointers(found.tokens),
                                 maps = spoken_text_pointers(found.maps);
  const MulciberSpokenAttention shown = {
      .size = sizeof(shown),
      .token_count = static_cast<uint32_t>(tokens.size()),
      .map_count = static_cast<uint32_t>(maps.size()),
      .positions = found.positions,
      .tokens = tokens.data(),
      .maps = maps.data(),
      .weights = found.weights.data(),
      .start = found.start,
      .seconds = found.seconds,
      .position_seconds = found.position_seconds,
      .frame_count = static_cast<uint32_t>(found.features.size() / found.mels),
      .mels = found.mels,
      .features = found.features.data(),
      .frame_seconds = found.frame_seconds};
  info.on_attention(info.user, &shown);
}

void add_speech_callbacks(TranscribeOptions& options, const MulciberTranscribeInfo& info) {
  if (info.on_language)
    options.on_language = [info](const SpokenLanguage& found, double seconds) {
      info.on_language(info.user, found.language.c_str(), found.probability, seconds);
    };
  if (info.on_segment)
    options.on_segment = [info](const TranscriptSegment& found) {
      const std::vector<MulciberTranscribedWord> words = shown_words(found.words);
      const MulciberTranscriptSegment segment = shown_segment(found, words);
      info.on_segment(info.user, &segment);
    };
  if (info.on_text)
    options.on_text = [info](const std::string& text) {
      info.on_text(info.user, text.data(), text.size());
    };
  if (info.on_progress)
    options.progress = [info](double done, double total) {
      info.on_progress(info.user, done, total);
    };
  if (info.on_attention)
    options.on_attention = [info](const SpokenAttention& found) {
      give_spoken_attention(found, info);
    };
}

TranscribeOptions transcribe_options(const MulciberTranscribeInfo* from) {
  const auto info = optional_of_any_version(from, "MulciberTranscribeInfo");
  TranscribeOptions options;
  options.sample_rate = info.sample_rate;
  if (info.language) options.language = info.language;
  options.translate = info.translate != 0;
  options.timestamps = info.no_timestamps == 0;
  options.word_times = info.word_times != 0;
  options.follow_previous = info.no_follow == 0;
  if (info.prompt) options.prompt = info.prompt;
  if (info.beams > 0) options.beams = info.beams;
  if (info.candidates > 0) options.candidates = info.candidates;
  if (info.temperature_count > 0) {
    const double* first = &given_to(info.temperatures, "temperatures");
    options.temperatures.assign(first, first + info.temperature_count);
  }
  if (info.most_compression != 0) options.most_compression = info.most_compression;
  if (info.least_log_probability != 0) options.least_log_probability = info.least_log_probability;
  if (info.most_no_speech != 0) options.most_no_speech = info.most_no_speech;
  options.seed = info.seed;
  options.cancel = cancel_flag(info.cancel);
  add_speech_callbacks(options, info);
  return options;
}

/// Gives what `transcribe`, called with the transcriber and its options, returns.
template <typename Transcribe>
MulciberStatus give_transcript(MulciberContext* context, MulciberTranscriber* transcriber,
                               const MulciberTranscribeInfo* info, MulciberResult** result,
                               const MulciberTranscript** transcript,
                               const Transcribe& transcribe) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(transcript, "transcript") = nullptr;
    Transcriber& by = given_to(transcriber, "transcriber").transcriber;
    auto shown = std::make_shared<ShownTranscript>();
    shown->found = transcribe(by, transcribe_options(info));
    const MulciberTranscript* found = shown->show();
    *result = new MulciberResult{shown};
    *transcript = found;
  });
}

std::span<const float> given_samples(size_t count, const float* samples) {
  if (count > 0) given_to(samples, "samples");
  return {samples, count};
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_transcriber(MulciberContext* context, MulciberDevice* device,
                                         const MulciberModel* model, const MulciberLoadInfo* info,
                                         MulciberTranscriber** transcriber) {
  return guarded(context, [&] {
    given_to(transcriber, "transcriber") = nullptr;
    *transcriber = new MulciberTranscriber(Transcriber(given_to(device, "device").device,
                                                       given_to(model, "model").model,
                                                       load_options(load_info(info))));
  });
}

void mulciber_destroy_transcriber(MulciberTranscriber* transcriber) { delete transcriber; }

MulciberStatus mulciber_trim_transcriber(MulciberContext* context, MulciberTranscriber* transcriber,
                                         uint64_t* freed) {
  return guarded(context, [&] {
    if (freed) *freed = 0;
    const uint64_t bytes = given_to(transcriber, "transcriber").transcriber.trim();
    if (freed) *freed = bytes;
  });
}

MulciberStatus mulciber_describe_transcriber(MulciberContext* context,
                                             const MulciberTranscriber* transcriber,
                                             MulciberTranscriberReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberTranscriberReport", [&](MulciberTranscriberReport& to) {
      const MulciberTranscriber& of = given_to(transcriber, "transcriber");
      to.sample_rate = of.transcriber.sample_rate();
      to.window_seconds = of.transcriber.window_seconds();
      to.multilingual = of.transcriber.multilingual();
      to.language_count = static_cast<uint32_t>(of.languages.size());
      to.languages = of.languages.data();
    });
  });
}

MulciberStatus mulciber_transcriber_statistics(MulciberContext* context,
                                               const MulciberTranscriber* transcriber,
                                               MulciberTranscribeStatistics* statistics) {
  return guarded(context, [&] {
    give(statistics, "MulciberTranscribeStatistics", [&](MulciberTranscribeStatistics& to) {
      const TranscribeStatistics& from =
          given_to(transcriber, "transcriber").transcriber.statistics();
      to.windows = static_cast<uint32_t>(from.windows);
      to.fallbacks = static_cast<uint32_t>(from.fallbacks);
      to.tokens = from.tokens;
      to.sound_seconds = from.sound_seconds;
      to.load_seconds = from.load_seconds;
      to.feature_seconds = from.feature_seconds;
      to.encode_seconds = from.encode_seconds;
      to.decode_seconds = from.decode_seconds;
      to.word_seconds = from.word_seconds;
      to.total_seconds = from.total_seconds;
      to.weight_bytes = from.weight_bytes;
      to.peak_device_bytes = from.peak_device_bytes;
    });
  });
}

MulciberStatus mulciber_transcribe(MulciberContext* context, MulciberTranscriber* transcriber,
                                   size_t count, const float* samples,
                                   const MulciberTranscribeInfo* info, MulciberResult** result,
                                   const MulciberTranscript** transcript) {
  return give_transcript(context, transcriber, info, result, transcript,
                         [&](Transcriber& by, const TranscribeOptions& options) {
                           return by.transcribe(given_samples(count, samples), options);
                         });
}

MulciberStatus mulciber_transcribe_file(MulciberContext* context, MulciberTranscriber* transcriber,
                                        const char* path, const MulciberTranscribeInfo* info,
                                        MulciberResult** result,
                                        const MulciberTranscript** transcript) {
  return give_transcript(context, transcriber, info, result, transcript,
                         [&](Transcriber& by, const TranscribeOptions& options) {
                           return by.transcribe_file(&given_to(path, "path"), options);
                         });
}

MulciberStatus mulciber_transcribe_bytes(MulciberContext* context, MulciberTranscriber* transcriber,
                                         const void* bytes, size_t size, const char* name,
                                         const MulciberTranscribeInfo* info,
                                         MulciberResult** result,
                                         const MulciberTranscript** transcript) {
  return give_transcript(
      context, transcriber, info, result, transcript,
      [&](Transcriber& by, const TranscribeOptions& options) {
        const auto* first = &given_to(static_cast<const std::byte*>(bytes), "bytes");
        return by.transcribe_file(std::span(first, size), name ? name : "sound", options);
      });
}

MulciberStatus mulciber_detect_language(MulciberContext* context, MulciberTranscriber* transcriber,
                                        size_t count, const float* samples, uint32_t sample_rate,
                                        MulciberResult** result, uint32_t* language_count,
                                        const MulciberSpokenLanguage** languages) {
  return guarded(context, [&] {
    given_to(result, "result") = nullptr;
    given_to(language_count, "language_count") = 0;
    given_to(languages, "languages") = nullptr;
    Transcriber& by = given_to(transcriber, "transcriber").transcriber;
    auto shown = std::make_shared<ShownLanguages>();
    shown->found = by.detect_language(given_samples(count, samples), sample_rate);
    for (const SpokenLanguage& found : shown->found)
      shown->list.push_back({.size = sizeof(MulciberSpokenLanguage),
                             .language = found.language.c_str(),
                             .probability = found.probability});
    *result = new MulciberResult{shown};
    *language_count = static_cast<uint32_t>(shown->list.size());
    *languages = shown->list.data();
  });
}
