#include "mulciber/transcriber.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "audio/log_mel.h"
#include "audio/sound_file.h"
#include "base/clock.h"
#include "models/adapters/adapters.h"
#include "models/core/model_options.h"
#include "models/core/trim_memory.h"
#include "models/families/open_model.h"
#include "models/generation/decoding.h"
#include "models/speech/speech_rules.h"
#include "models/speech/speech_search.h"
#include "models/speech/spoken_attention.h"
#include "models/speech/spoken_words.h"
#include "mulciber/error.h"
#include "runtime/public_devices.h"
#include "text/token_stream.h"

namespace mulciber {
namespace {

LogMelOptions read_log_mel(const Checkpoint& checkpoint, const WhisperConfig& config) {
  const std::filesystem::path path = checkpoint.folder() / "preprocessor_config.json";
  LogMelOptions options = {.mels = config.mels};
  if (!checkpoint.files().exists(path)) return options;
  const Json json = read_json(checkpoint.files().open(path));
  const ConfigReader reader(json, path.string());
  options = LogMelOptions::read(reader);
  if (options.mels != config.mels)
    reader.fail("feature_size",
                fmt::format("is {}, config.json says {}", options.mels, config.mels));
  return options;
}

/// A window's text, with the temperature at which it was found.
struct FoundText {
  SpeechText text;
  double temperature = 0, compression = 0;
};

bool blank(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c <= ' '; });
}

/// Transcribes what read_sound() gave. name: of the file.
Transcript transcribe_sound(Transcriber& transcriber, const Sound& sound, const std::string& name,
                            TranscribeOptions options) {
  if (sound.samples.empty())
    throw ModelError(name,
                     sound.missing_seconds > 0
                         ? fmt::format("is cut short: its header says {:.1f} s, and no sample of "
                                       "them is there",
                                       sound.missing_seconds)
                         : "holds no sound: not one sample",
                     "record or download it again");
  options.sample_rate = 0;  // read_sound() has resampled
  Transcript transcript = transcriber.transcribe(sound.samples, options);
  transcript.missing_seconds = sound.missing_seconds;
  return transcript;
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first);
}

}  // namespace

struct Transcriber::Impl {
  std::shared_ptr<Device> device;
  std::unique_ptr<Model> model;
  SpeechModel* speech = nullptr;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<SpeechIds> ids;
  std::optional<LogMel> log_mel;
  TranscribeStatistics statistics;

  void load(const OpenModel& opened, const LoadOptions& options,
            std::shared_ptr<WeightsLoad> weights) {
    const auto start = Clock::now();
    opened.require(Capability::kHear);
    tokenizer = opened.tokenizer();
    ModelOptions loading = model_options(options);
    loading.weights = std::move(weights);
    model = load_model(*device, opened, loading);
    speech = model->hears();
    ids.emplace(*tokenizer, speech->config());
    log_mel.emplace(read_log_mel(opened.checkpoint(), speech->config()));
    statistics.weight_bytes = model->weight_bytes();
    statistics.load_seconds = seconds_since(start);
  }

  bool multilingual() const { return speech->config().multilingual && !ids->languages.empty(); }
  double frame_seconds() const {
    return static_cast<double>(log_mel->options().hop_length) / log_mel->options().sample_rate;
  }

  std::string decode(std::span<const uint32_t> text) const {
    std::vector<int32_t> kept;
    for (const uint32_t id : text)
      if (!ids->is_timestamp(id)) kept.push_back(static_cast<int32_t>(id));
    return written_text(*tokenizer, kept);
  }

  void check(const TranscribeOptions& options) const {
    const auto refuse = [](const std::string& option, const std::string& problem,
                           const std::string& remedy) {
      throw ModelError(option, problem, remedy);
    };
    if (!multilingual() &&
        (options.translate || (!options.language.empty() && options.language != "en")))
      refuse("language", "the model knows English alone", "take a multilingual Whisper");
    if (!options.language.empty() && multilingual() && !ids->languages.contains(options.language))
      refuse("language", fmt::format("'{}' is none of the model's", printable(options.language)),
             "give a code such as en or de");
    for (const uint32_t rows : {options.beams, options.candidates})
      if (rows == 0 || rows > kMaxBeams)
        refuse("beams", fmt::format("are {}, not 1 to {}", rows, kMaxBeams), "");
    if (options.temperatures.empty()) refuse("temperatures", "are none", "give 0 for one search");
    for (const double value : options.temperatures)
      if (!(value >= 0 && value <= 10))
        refuse("temperatures", fmt::format("hold {}, not 0 to 10", value), "");
  }

  /// The languages of the window that was encoded last, the most probable first.
  std::vector<SpokenLanguage> detect() {
    speech->begin(1);
    const uint32_t start = ids->start, parent = 0;
    const std::span<const float> logits = speech->step({&start, 1}, {&parent, 1});
    std::vector<float> shares;
    for (const auto& [code, id] : ids->languages) shares.push_back(logits[id]);
    log_softmax(shares);
    std::vector<SpokenLanguage> found;
    for (const auto& [code, id] : ids->languages)
      found.push_back({code, std::exp(static_cast<double>(shares[found.size()]))});
    std::ranges::stable_sort(found, std::greater(), &SpokenLanguage::probability);
    return found;
  }

  /// Checks samples, and gives them at the model's rate. rate: theirs, Hz; 0: the model's.
  /// storage: holds them if they were resampled.
  std::span<const float> at_model_rate(std::span<const float> samples, uint32_t rate,
                                       std::vector<float>& storage) const {
    check_samples(samples, "sound");
    const uint32_t wanted = log_mel->options().sample_rate;
    if (rate == 0 || rate == wanted) return samples;
    storage = resampled(samples, rate, wanted);
    return storage;
  }

  /// The ids before a window's text. before: ids of the texts of earlier windows.
  std::vector<uint32_t> prompt(std::span<const uint32_t> before, const std::string& language,
                               const TranscribeOptions& options) const {
    std::vector<uint32_t> prompt;
    if (!before.empty() && ids->previous) {
      const size_t most = speech->config().context / 2 - 1;
      prompt.push_back(*ids->previous);
      const auto kept = before.last(std::min(before.size(), most));
      prompt.insert(prompt.end(), kept.begin(), kept.end());
    }
    prompt.push_back(ids->start);
    if (multilingual()) {
      prompt.push_back(ids->languages.at(language));
      const std::optional<uint32_t>& task = options.translate ? ids->translate : ids->transcribe;
      if (task) prompt.push_back(*task);
    }
    if (!timed(options) && ids->no_timestamps) prompt.push_back(*ids->no_timestamps);
    return prompt;
  }

  bool timed(const TranscribeOptions& options) const {
    return options.timestamps && ids->timestamps > 0;
  }

  FoundText find(std::span<const uint32_t> prompt, const TranscribeOptions& options) {
    FoundText found;
    const SpeechRules rules(*ids, speech->config(), timed(options));
    for (size_t i = 0; i < options.temperatures.size(); ++i) {
      SpeechSearchSettings settings;
      settings.temperature = options.temperatures[i];
      settings.beams = options.beams;
      settings.candidates = options.candidates;
      settings.seed = options.seed + i;
      settings.max_tokens = speech->config().context / 2;
      settings.ends = {ids->end};
      settings.rules = rules;
      settings.cancel = options.cancel;
      settings.silence = ids->no_speech;
      settings.silence_at = static_cast<uint32_t>(
          std::find(prompt.begin(), prompt.end(), ids->start) - prompt.begin());
      if (options.on_text)
        settings.on_text = [&](std::span<const uint32_t> text) { options.on_text(decode(text)); };
      found.text = search_speech(*speech, prompt, settings);
      found.temperature = settings.temperature;
      found.compression = compression_ratio(decode(found.text.ids));
      if (i > 0) ++statistics.fallbacks;
      if (found.text.cancelled || acceptable(found, options)) break;
    }
    return found;
  }

  static bool unlikely(const FoundText& found, const TranscribeOptions& options) {
    return found.text.mean_log_probability() < options.least_log_probability;
  }
  static bool silent(const FoundText& found, const TranscribeOptions& options) {
    return found.text.no_speech > options.most_no_speech && unlikely(found, options);
  }
  static bool acceptable(const FoundText& found, const TranscribeOptions& options) {
    if (silent(found, options)) return true;
    return found.compression <= options.most_compression && !unlikely(found, options);
  }

  std::vector<SpokenLanguage> languages_of(std::span<const float> samples, uint32_t rate);
  Transcript run(std::span<const float> samples, const TranscribeOptions& options);
};

namespace {

/// The transcript of one sound, window by window.
class Transcription {
 public:
  Transcription(const TranscribeOptions& options, Transcript& result)
      : options_(options), result_(result) {}

  /// start, seconds: of the window. Returns the seconds of the window after which the next one
  /// begins.
  template <typename Impl>
  double add(Impl& impl, const FoundText& found, double start, double seconds,
             std::span<const uint32_t> prompt) {
    const TimedTexts cut = cut_at_timestamps(*impl.ids, found.text.ids, seconds);
    std::vector<TranscriptSegment> segments;
    for (const TimedText& part : cut.parts) {
      TranscriptSegment segment = {.start = start + part.start,
                                   .end = start + part.end,
                                   .text = trimmed(impl.decode(part.ids)),
                                   .ids = part.ids,
                                   .temperature = found.temperature,
                                   .log_probability = found.text.mean_log_probability(),
                                   .compression_ratio = found.compression,
                                   .no_speech = found.text.no_speech};
      if (!blank(segment.text) && segment.end > segment.start)
        segments.push_back(std::move(segment));
    }
    if (options_.word_times) add_words(impl, segments, start, seconds, prompt);
    for (TranscriptSegment& segment : segments) {
      before_.insert(before_.end(), segment.ids.begin(), segment.ids.end());
      result_.text += (result_.text.empty() ? "" : " ") + segment.text;
      if (options_.on_segment) options_.on_segment(segment);
      result_.segments.push_back(std::move(segment));
    }
    // A text sampled at a high temperature misleads the next window.
    if (!options_.follow_previous || found.temperature > 0.5) forgotten_ = before_.size();
    return cut.heard;
  }

  void begin_with(std::vector<uint32_t> ids) { before_ = std::move(ids); }
  std::span<const uint32_t> before() const {
    return std::span<const uint32_t>(before_).subspan(forgotten_);
  }

 private:
  template <typename Impl>
  void add_words(Impl& impl, std::vector<TranscriptSegment>& segments, double start, double seconds,
                 std::span<const uint32_t> prompt) {
    const auto began = Clock::now();
    add_spoken_words(*impl.speech, *impl.tokenizer, *impl.ids, prompt, result_.language, start,
                     seconds, segments);
    impl.statistics.word_seconds += seconds_since(began);
  }

  const TranscribeOptions& options_;
  Transcript& result_;
  std::vector<uint32_t> before_;  // ids of all segments
  size_t forgotten_ = 0;          // how many of them the next window's prompt leaves out
};

}  // namespace

std::vector<SpokenLanguage> Transcriber::Impl::languages_of(std::span<const float> samples,
                                                            uint32_t rate) {
  std::vector<float> storage;
  samples = at_model_rate(samples, rate, storage);
  if (samples.empty()) throw ModelError("sound", "has no samples", "give some");
  if (!multilingual()) return {{"en", 1}};
  // Frames behind the window are computed too, as run() does.
  const LogMelOptions& sizes = log_mel->options();
  const size_t window = speech->config().frames();
  samples = samples.first(std::min(samples.size(), window * sizes.hop_length));
  const size_t frames = (samples.size() + sizes.hop_length - 1) / sizes.hop_length;
  const std::vector<float> features = (*log_mel)(samples, frames + window);
  speech->encode(std::span(features).first(window * sizes.mels));
  return detect();
}

Transcript Transcriber::Impl::run(std::span<const float> samples,
                                  const TranscribeOptions& options) {
  check(options);
  std::vector<float> storage;
  samples = at_model_rate(samples, options.sample_rate, storage);
  const LogMelOptions& sizes = log_mel->options();
  Transcript result = {.language = multilingual() ? options.language : "en",
                       .seconds = static_cast<double>(samples.size()) / sizes.sample_rate};
  statistics.sound_seconds += result.seconds;
  const size_t window = speech->config().frames();
  const size_t frames = (samples.size() + sizes.hop_length - 1) / sizes.hop_length;
  if (frames == 0) {
    result.complete = true;
    return result;
  }
  auto clock = Clock::now();
  const auto lap = [&](double& seconds) {
    seconds += seconds_since(clock);
    clock = Clock::now();
  };
  // The last window is filled with silence behind the end.
  const std::vector<float> features = (*log_mel)(samples, frames + window);
  lap(statistics.feature_seconds);

  Transcription transcription(options, result);
  if (!options.prompt.empty()) {
    const std::vector<int32_t> ids_of = tokenizer->encode(
        " " + trimmed(options.prompt), {.add_special = false, .parse_special = false});
    transcription.begin_with({ids_of.begin(), ids_of.end()});
  }
  for (size_t seek = 0; seek < frames;) {
    if (options.cancel && *options.cancel) return result;
    speech->encode(std::span(features).subspan(seek * sizes.mels, window * sizes.mels));
    lap(statistics.encode_seconds);
    ++statistics.windows;
    if (result.language.empty()) {
      SpokenLanguage best = std::move(detect().front());
      result.language = std::move(best.language);
      result.language_probability = best.probability;
    }
    if (seek == 0 && options.on_language)
      options.on_language({result.language, result.language_probability}, result.seconds);
    const std::vector<uint32_t> start = prompt(transcription.before(), result.language, options);
    const FoundText found = find(start, options);
    statistics.tokens += found.text.tokens;
    lap(statistics.decode_seconds);
    if (found.text.cancelled) return result;
    const size_t taken = std::min(window, frames - seek);
    double heard = static_cast<double>(taken) * frame_seconds();
    if (!silent(found, options))
      heard = transcription.add(*this, found, static_cast<double>(seek) * frame_seconds(), heard,
                                start);
    if (options.on_attention && !found.text.ids.empty())
      options.on_attention(
          spoken_attention(*speech, *tokenizer, *ids, start, found.text.ids,
                           std::span(features).subspan(seek * sizes.mels, taken * sizes.mels),
                           {.start = static_cast<double>(seek) * frame_seconds(),
                            .seconds = static_cast<double>(taken) * frame_seconds(),
                            .frame_seconds = frame_seconds()}));
    clock = Clock::now();
    seek += std::clamp<size_t>(static_cast<size_t>(std::lround(heard / frame_seconds())), 1, taken);
    if (options.progress)
      options.progress(static_cast<double>(seek) * frame_seconds(), result.seconds);
  }
  result.complete = true;
  return result;
}

Transcriber::Transcriber(std::shared_ptr<Device> device, const std::string& folder,
                         const LoadOptions& options)
    : Transcriber(std::move(device), open_model(folder), options) {}

Transcriber::Transcriber(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
                         const LoadOptions& options)
    : Transcriber(std::move(device), *model, options, nullptr) {}

Transcriber::Transcriber(std::shared_ptr<Device> device, const OpenModel& model,
                         const LoadOptions& options, std::shared_ptr<WeightsLoad> weights)
    : impl_(std::make_unique<Impl>()) {
  impl_->device = given(std::move(device), "Transcriber");
  impl_->load(model, options, std::move(weights));
}

Transcriber::~Transcriber() = default;
Transcriber::Transcriber(Transcriber&&) noexcept = default;
Transcriber& Transcriber::operator=(Transcriber&&) noexcept = default;

Transcript Transcriber::transcribe(std::span<const float> samples,
                                   const TranscribeOptions& options) {
  const auto start = Clock::now();
  impl_->statistics = {.load_seconds = impl_->statistics.load_seconds,
                       .weight_bytes = impl_->statistics.weight_bytes};
  Transcript result = impl_->run(samples, options);
  impl_->statistics.total_seconds = seconds_since(start);
  impl_->statistics.peak_device_bytes = impl_->device->memory().peak();
  return result;
}

std::vector<Transcript> Transcriber::transcribe(std::span<const std::vector<float>> sounds,
                                                const TranscribeOptions& options) {
  const auto start = Clock::now();
  impl_->statistics = {.load_seconds = impl_->statistics.load_seconds,
                       .weight_bytes = impl_->statistics.weight_bytes};
  std::vector<Transcript> results(sounds.size());
  for (size_t i = 0; i < sounds.size(); ++i) {
    results[i] = impl_->run(sounds[i], options);
    if (!results[i].complete) break;
  }
  impl_->statistics.total_seconds = seconds_since(start);
  impl_->statistics.peak_device_bytes = impl_->device->memory().peak();
  return results;
}

Transcript Transcriber::transcribe_file(const std::string& path, const TranscribeOptions& options) {
  return transcribe_sound(*this, read_sound(std::filesystem::path(path), sample_rate()), path,
                          options);
}

Transcript Transcriber::transcribe_file(std::span<const std::byte> bytes, const std::string& name,
                                        const TranscribeOptions& options) {
  return transcribe_sound(*this, read_sound(bytes, name, sample_rate()), name, options);
}

std::vector<SpokenLanguage> Transcriber::detect_language(std::span<const float> samples,
                                                         uint32_t rate) {
  return impl_->languages_of(samples, rate);
}

uint32_t Transcriber::sample_rate() const { return impl_->log_mel->options().sample_rate; }
double Transcriber::window_seconds() const {
  return impl_->speech->config().frames() * impl_->frame_seconds();
}
bool Transcriber::multilingual() const { return impl_->multilingual(); }
std::vector<std::string> Transcriber::languages() const {
  std::vector<std::string> codes;
  for (const auto& [code, id] : impl_->ids->languages) codes.push_back(code);
  return codes;
}
const TranscribeStatistics& Transcriber::statistics() const { return impl_->statistics; }
const std::shared_ptr<Device>& Transcriber::device() const { return impl_->device; }

uint64_t Transcriber::trim() {
  return trim_memory(*impl_->device, [&] { impl_->speech->trim(); });
}

}  // namespace mulciber
