// Reads sound files as samples of one channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace mulciber {

/// Limits for a file. A header's numbers allocate nothing: samples are read in blocks, and reading
/// ends with an error where a limit is exceeded.
struct SoundLimits {
  double max_seconds = 4 * 3600;
  uint32_t max_channels = 64;
};

struct Sound {
  std::vector<float> samples;
  /// Missing seconds of a file that was cut short; 0 where the file claims no longer length.
  double missing_seconds = 0;
};

/// Reads a sound file with libsndfile (WAV, FLAC, Ogg with Vorbis or Opus, MP3, AIFF, AU), its
/// channels averaged, resampled to sample_rate Hz by a windowed sinc of 121 dB. A file without
/// samples gives none.
/// Throws ModelError, naming the file: not a sound file, damaged, a rate outside of 1 kHz to 384
/// kHz, a limit exceeded, an invalid sample, or built without libsndfile and libsamplerate.
Sound read_sound(const std::filesystem::path& path, uint32_t sample_rate,
                 const SoundLimits& limits = {});

/// Reads the bytes of a file; `name` names it in errors.
Sound read_sound(std::span<const std::byte> bytes, const std::string& name, uint32_t sample_rate,
                 const SoundLimits& limits = {});

/// Resamples one channel as read_sound() does. Throws ModelError for a rate outside of 1 kHz to 384
/// kHz, or if this build has no libsndfile and libsamplerate.
std::vector<float> resampled(std::span<const float> samples, uint32_t from_rate, uint32_t to_rate);

/// Throws ModelError naming the first sample that is infinite, not a number or above 4e9, where
/// full scale is 1; `first` is the position of samples[0] in the whole sound.
void check_samples(std::span<const float> samples, const std::string& name, uint64_t first = 0);

}  // namespace mulciber
