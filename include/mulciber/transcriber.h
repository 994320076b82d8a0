// Speech to text with Whisper on any Vulkan device. No Vulkan headers are needed. Errors are the
// types of mulciber/error.h; nothing is printed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mulciber/device.h"
#include "mulciber/load_options.h"
#include "mulciber/open_model.h"

namespace mulciber {

class WeightsLoad;

struct TranscribedWord {
  std::string text;           // with the punctuation that follows it
  double start = 0, end = 0;  // seconds
  double probability = 0;     // mean over its tokens, among the ids of text
};

struct TranscriptSegment {
  double start = 0, end = 0;  // seconds
  std::string text;
  std::vector<uint32_t> ids;           // timestamps included
  double temperature = 0;              // sampling temperature that gave this text
  double log_probability = 0;          // mean over the window's tokens
  double compression_ratio = 0;        // bytes of the window's text over their number after zlib
  double no_speech = 0;                // probability that the window holds no speech
  std::vector<TranscribedWord> words;  // if TranscribeOptions::word_times
};

/// Cross-attention of a window: the audio positions that each token of its text attends to. Row i
/// of a map belongs to the step that chose token i.
struct SpokenAttention {
  double start = 0, seconds = 0;    // the window's begin and length, in seconds
  std::vector<std::string> tokens;  // tokens of its text, timestamps included
  std::vector<std::string> maps;    // name of each map: "layer 3, head 1", or a mean of several
  uint32_t positions = 0;           // encoder positions that hold sound
  double position_seconds = 0;      // duration of one position
  std::vector<float> weights;       // (maps, tokens, positions), probabilities
  uint32_t mels = 0;
  double frame_seconds = 0;
  std::vector<float> features;  // (frames, mels): log-mel spectrogram, the model's input
};

/// A language of speech, and its probability among the model's languages.
struct SpokenLanguage {
  std::string language;  // "en"
  double probability = 0;
};

struct Transcript {
  std::string text;
  std::string language;             // "en"
  double language_probability = 0;  // if it was detected; else 0
  double seconds = 0;               // length of the recording
  /// Seconds that a truncated file lacks, by its header.
  double missing_seconds = 0;
  std::vector<TranscriptSegment> segments;
  /// False when transcribe() was cancelled; segments then holds the windows before.
  bool complete = false;
};

/// Options of transcribe(). The thresholds are those of Radford et al. 2022, arXiv:2212.04356,
/// section 4.5.
struct TranscribeOptions {
  std::string language;     // "de"; empty: detected from the first window
  bool translate = false;   // translate into English
  bool timestamps = true;   // false: a window is one segment
  bool word_times = false;  // start and end of words, from cross-attention
  std::string prompt;       // preceding text, or the spelling of names
  uint32_t beams = 5;       // at temperature 0; 1: greedy search
  uint32_t candidates = 5;  // samples drawn at temperatures above 0
  /// Temperatures to try in turn while a window's text is too repetitive (most_compression) or too
  /// improbable (least_log_probability).
  std::vector<double> temperatures = {0, 0.2, 0.4, 0.6, 0.8, 1};
  double most_compression = 2.4;
  double least_log_probability = -1;  // mean over the tokens
  double most_no_speech = 0.6;        // above it an improbable text counts as silence
  bool follow_previous = true;        // a window's text is the prompt of the next
  uint64_t seed = 0;
  /// Called after every window with the seconds done and in total.
  std::function<void(double done, double total)> progress;
  std::function<void(const TranscriptSegment& segment)> on_segment;
  /// Called after every window that has text; an extra pass computes the maps.
  std::function<void(const SpokenAttention& attention)> on_attention;
  /// Called while a window's text grows.
  std::function<void(const std::string& text)> on_text;
  /// Read between tokens; once true, transcribe() returns the transcript so far.
  const std::atomic<bool>* cancel = nullptr;
  /// Called once, before any text, with the language and its probability if it was detected (else
  /// 0), and the length of the recording in seconds. Not called for a recording without samples.
  std::function<void(const SpokenLanguage& language, double seconds)> on_language;
  uint32_t sample_rate = 0;  // of samples given to transcribe(), Hz; 0: the model's
};

/// Counts and times of the last call, and of loading where marked "load".
struct TranscribeStatistics {
  size_t windows = 0, fallbacks = 0;  // fallbacks: searches at another temperature than the first
  uint64_t tokens = 0;                // tokens of the accepted texts
  double sound_seconds = 0;
  double load_seconds = 0;  // load: files to device
  double feature_seconds = 0, encode_seconds = 0, decode_seconds = 0, word_seconds = 0;
  double total_seconds = 0;
  uint64_t weight_bytes = 0;  // load: on the device
  uint64_t peak_device_bytes = 0;
};

/// A Whisper model (a Hugging Face folder) on a device.
class MULCIBER_API Transcriber {
 public:
  /// Throws ModelError when the folder does not hold such a model or its files disagree,
  /// DeviceError when the model does not fit the device's memory.
  Transcriber(std::shared_ptr<Device> device, const std::string& folder,
              const LoadOptions& options = {});
  Transcriber(std::shared_ptr<Device> device, std::shared_ptr<const OpenModel> model,
              const LoadOptions& options = {});
  ~Transcriber();
  Transcriber(Transcriber&&) noexcept;
  Transcriber& operator=(Transcriber&&) noexcept;

  /// Transcribes a recording. samples: one channel at TranscribeOptions::sample_rate, full scale 1;
  /// empty samples give an empty transcript. Throws ModelError for samples that are not finite or
  /// far above full scale, and for options that do not fit the model.
  Transcript transcribe(std::span<const float> samples, const TranscribeOptions& options = {});
  /// Transcribes several recordings, one after another.
  std::vector<Transcript> transcribe(std::span<const std::vector<float>> sounds,
                                     const TranscribeOptions& options = {});
  /// Transcribes a WAV, FLAC, Ogg or MP3 file of any sample rate, with up to 64 channels and four
  /// hours. Throws ModelError naming the file, also when it holds no sample.
  Transcript transcribe_file(const std::string& path, const TranscribeOptions& options = {});
  /// Transcribes the bytes of such a file. name: for messages.
  Transcript transcribe_file(std::span<const std::byte> bytes, const std::string& name,
                             const TranscribeOptions& options = {});
  /// The languages that may be spoken in the first window of a recording, the most probable first;
  /// English alone for models that know no other. rate: of the samples, Hz; 0: sample_rate().
  /// Throws ModelError as transcribe(), and for empty samples.
  std::vector<SpokenLanguage> detect_language(std::span<const float> samples, uint32_t rate = 0);

  uint32_t sample_rate() const;   // Hz
  double window_seconds() const;  // length of the model's input
  bool multilingual() const;
  std::vector<std::string> languages() const;
  const TranscribeStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;
  /// Frees device memory that is kept for later sounds: programs, caches and activations. Weights
  /// stay. Returns what Translator::trim() does.
  uint64_t trim();

 private:
  friend class ModelLoader;  // mulciber/model_loader.h
  Transcriber(std::shared_ptr<Device> device, const OpenModel& model, const LoadOptions& options,
              std::shared_ptr<WeightsLoad> weights);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
