// Speech to text with Whisper on any Vulkan device. No Vulkan headers are needed. Errors are the
// types of mulciber/error.h; nothing is printed.
#pragma once

#include <atomic>
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

struct TranscribedWord {
  std::string text;           // with the punctuation that follows it
  double start = 0, end = 0;  // seconds
};

struct TranscriptSegment {
  double start = 0, end = 0;  // seconds
  std::string text;
  std::vector<uint32_t> ids;           // timestamps included
  double temperature = 0;              // at which it was found
  double log_probability = 0;          // the mean over the window's tokens
  double compression_ratio = 0;        // bytes of the window's text to those that zlib makes of it
  double no_speech = 0;                // probability that nobody speaks in the window
  std::vector<TranscribedWord> words;  // where they were asked for
};

/// Where in a window of sound each token of its text came from: cross-attention. Row i of a map is
/// of the step that chose token i.
struct SpokenAttention {
  double start = 0, seconds = 0;    // of the sound: where the window begins, and how much it holds
  std::vector<std::string> tokens;  // of its text, timestamps included
  std::vector<std::string> maps;    // what each map is: "layer 3, head 1", or means of several
  uint32_t positions = 0;           // of the encoder, those without sound left out
  double position_seconds = 0;      // of one
  std::vector<float> weights;       // (maps, tokens, positions), probabilities
  uint32_t mels = 0;
  double frame_seconds = 0;
  std::vector<float> features;  // (frames, mels): the log-mel spectrogram that the model hears
};

struct Transcript {
  std::string text;
  std::string language;             // "en"
  double language_probability = 0;  // where it was detected; else 0
  double seconds = 0;               // of the sound
  /// Of a file that was cut short: how much longer its header says it is.
  double missing_seconds = 0;
  std::vector<TranscriptSegment> segments;
  /// False when transcribe() was cancelled; segments holds what was found before.
  bool complete = false;
};

/// The thresholds are those of the paper's section 4.5.
struct TranscribeOptions {
  std::string language;     // "de"; empty: detected from the first window
  bool translate = false;   // into English
  bool timestamps = true;   // false: a window is one segment
  bool word_times = false;  // start and end of words, from cross-attention
  std::string prompt;       // what was said before, or how names are spelled
  uint32_t beams = 5;       // at temperature 0; 1: greedy search
  uint32_t candidates = 5;  // texts drawn at temperatures above 0
  /// Tried one after the other while a window's text repeats itself or is unlikely.
  std::vector<double> temperatures = {0, 0.2, 0.4, 0.6, 0.8, 1};
  double most_compression = 2.4;
  double least_log_probability = -1;  // mean over the tokens
  double most_no_speech = 0.6;        // above it an unlikely text counts as silence
  bool follow_previous = true;        // a window's text is told to the next
  uint64_t seed = 0;
  /// Called after every window with the seconds done and in all.
  std::function<void(double done, double total)> progress;
  std::function<void(const TranscriptSegment& segment)> on_segment;
  /// Called after every window with a text: a pass of its own computes the maps.
  std::function<void(const SpokenAttention& attention)> on_attention;
  /// Called while a window's text grows.
  std::function<void(const std::string& text)> on_text;
  /// Looked at between tokens; once true, transcribe() returns with what is there.
  const std::atomic<bool>* cancel = nullptr;
};

/// Of the last call, except where it says "load".
struct TranscribeStatistics {
  size_t windows = 0, fallbacks = 0;  // fallbacks: searches at another temperature
  uint64_t tokens = 0;                // chosen, of the texts that were taken
  double sound_seconds = 0;
  double load_seconds = 0;  // files to device
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

  /// samples: one channel at sample_rate(), full scale 1. None give an empty transcript. Throws
  /// ModelError for samples that are no sound, and for options that do not fit the model.
  Transcript transcribe(std::span<const float> samples, const TranscribeOptions& options = {});
  /// Several sounds, one after the other.
  std::vector<Transcript> transcribe(std::span<const std::vector<float>> sounds,
                                     const TranscribeOptions& options = {});
  /// WAV, FLAC, Ogg or MP3, of any rate and up to 64 channels, four hours at most. Throws
  /// ModelError naming the file, also where it holds no sample.
  Transcript transcribe_file(const std::string& path, const TranscribeOptions& options = {});

  uint32_t sample_rate() const;   // Hz
  double window_seconds() const;  // what the model hears at once
  bool multilingual() const;
  std::vector<std::string> languages() const;
  const TranscribeStatistics& statistics() const;
  const std::shared_ptr<Device>& device() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mulciber
