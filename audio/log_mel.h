// Log-mel features, the input of Whisper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace mulciber {

class ConfigReader;

/// The sizes in preprocessor_config.json.
struct LogMelOptions {
  uint32_t sample_rate = 16000;  // Hz
  uint32_t fft_length = 400;     // samples in a frame's spectrum
  uint32_t hop_length = 160;     // samples from one frame to the next
  uint32_t mels = 80;            // triangular filters, 0 to sample_rate / 2 Hz

  /// Throws ModelError naming the key that is absent, out of bounds, or belongs to another kind of
  /// extractor.
  static LogMelOptions read(const ConfigReader& config);
};

/// Computes frames of a periodic Hann window, their power spectrum through triangular filters on
/// Slaney's mel scale (each of unit area), then log10, clamped at 8 below the greatest value, plus
/// 4,
/// over 4. The sums are in double precision: a quiet bin beside a loud one keeps its digits.
/// Source: Radford et al. 2022, arXiv:2212.04356, section 2.2; scale and filters: Slaney 1998,
/// "Auditory Toolbox", technical report 1998-010.
class LogMel {
 public:
  /// Throws ShapeError where fft_length is not a multiple of 4, or a size is 0.
  explicit LogMel(const LogMelOptions& options);

  const LogMelOptions& options() const { return options_; }
  uint32_t mels() const { return options_.mels; }

  /// log10 of the filters' sums, each at least 1e-10. Frame i is centred at sample i * hop_length.
  /// After their end samples count as 0 up to frames * hop_length; both ends of this range are
  /// mirrored. Samples after frames * hop_length are ignored.
  /// Result: (frames, mels). Throws ShapeError where frames * hop_length <= fft_length / 2.
  std::vector<float> log_spectrum(std::span<const float> samples, size_t frames) const;

  /// Clamps by the greatest value and scales, in place; pass all features that belong together.
  static void normalize(std::span<float> log_spectrum);

  /// Computes log_spectrum() and normalizes it.
  std::vector<float> operator()(std::span<const float> samples, size_t frames) const;

 private:
  struct Filter {
    uint32_t first_bin;
    std::vector<double> weights;
  };
  void power(std::span<const double> frame, std::span<double> result) const;

  LogMelOptions options_;
  std::vector<double> window_;           // (fft_length)
  std::vector<double> cosines_, sines_;  // (fft_length / 2 + 1, fft_length / 4 + 1)
  std::vector<Filter> filters_;          // (mels)
};

}  // namespace mulciber
