#include "audio/log_mel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "checkpoints/config_reader.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

// Slaney's scale: linear below 1000 Hz, 200 / 3 Hz a mel; above, 27 mels for a factor of 6.4.
constexpr double kLinearHz = 200.0 / 3, kBreakHz = 1000, kBreakMel = kBreakHz / kLinearHz;
const double kLogStep = std::log(6.4) / 27;

double mel_of_hz(double hz) {
  return hz < kBreakHz ? hz / kLinearHz : kBreakMel + std::log(hz / kBreakHz) / kLogStep;
}

double hz_of_mel(double mel) {
  return mel < kBreakMel ? mel * kLinearHz : kBreakHz * std::exp((mel - kBreakMel) * kLogStep);
}

}  // namespace

LogMelOptions LogMelOptions::read(const ConfigReader& config) {
  const std::string kind = config.text_or("feature_extractor_type", "WhisperFeatureExtractor");
  if (kind != "WhisperFeatureExtractor")
    config.fail("feature_extractor_type",
                "is " + printable(kind) + ", and only WhisperFeatureExtractor is known");
  const auto count = [&](const char* key, uint32_t fallback, int64_t least, int64_t most) {
    return static_cast<uint32_t>(config.integer_or(key, fallback, least, most));
  };
  LogMelOptions options;
  options.sample_rate = count("sampling_rate", options.sample_rate, 1000, 384'000);
  options.fft_length = count("n_fft", options.fft_length, 4, 1 << 14);
  options.hop_length = count("hop_length", options.hop_length, 1, 1 << 14);
  options.mels = count("feature_size", options.mels, 1, 1024);
  if (options.fft_length % 4 != 0) config.fail("n_fft", "is not a multiple of 4");
  return options;
}

LogMel::LogMel(const LogMelOptions& options) : options_(options) {
  const uint32_t length = options.fft_length;
  if (length == 0 || length % 4 != 0 || options.hop_length == 0 || options.mels == 0 ||
      options.sample_rate == 0)
    throw ShapeError("log-mel features",
                     fmt::format("frames of {} samples, {} apart, and {} filters at {} Hz", length,
                                 options.hop_length, options.mels, options.sample_rate),
                     "a frame is a multiple of 4 samples, and nothing is 0");
  window_.resize(length);
  for (uint32_t n = 0; n < length; ++n)
    window_[n] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * n / length);

  const uint32_t rows = length / 2 + 1, columns = length / 4 + 1;
  cosines_.resize(static_cast<size_t>(rows) * columns);
  sines_.resize(cosines_.size());
  for (uint32_t n = 0; n < rows; ++n) {
    for (uint32_t k = 0; k < columns; ++k) {
      // The number of turns is a whole number over the length, so the angle is exact for any n * k.
      const double angle = 2 * std::numbers::pi * (n * k % length) / length;
      cosines_[static_cast<size_t>(n) * columns + k] = std::cos(angle);
      sines_[static_cast<size_t>(n) * columns + k] = std::sin(angle);
    }
  }

  const double nyquist = options.sample_rate / 2.0, top = mel_of_hz(nyquist);
  const auto edge = [&](uint32_t i) { return hz_of_mel(top * i / (options.mels + 1)); };
  for (uint32_t m = 0; m < options.mels; ++m) {
    const double low = edge(m), middle = edge(m + 1), high = edge(m + 2);
    Filter filter{0, {}};
    for (uint32_t k = 0; k < rows; ++k) {
      const double hz = nyquist * k / (rows - 1);
      const double weight = std::min((hz - low) / (middle - low), (high - hz) / (high - middle));
      if (weight <= 0) continue;
      if (filter.weights.empty()) filter.first_bin = k;
      filter.weights.push_back(weight * 2 / (high - low));
    }
    filters_.push_back(std::move(filter));
  }
}

// Computes the discrete Fourier transform of real samples as a product with its matrix, folded
// twice: samples n and length - n share a cosine, and bins k and length / 2 - k differ by the sign
// of odd n.
void LogMel::power(std::span<const double> frame, std::span<double> result) const {
  const size_t length = frame.size(), half = length / 2, quarter = length / 4;
  const size_t columns = quarter + 1;
  // The sums are real and imaginary, each for even and odd n.
  std::vector<double> sums(4 * columns, 0.0);
  double* const real[2] = {sums.data(), sums.data() + columns};
  double* const imaginary[2] = {sums.data() + 2 * columns, sums.data() + 3 * columns};
  for (size_t n = 0; n <= half; ++n) {
    const bool single = n == 0 || n == half;  // the sample is its own mirror image
    const double even = single ? frame[n] : frame[n] + frame[length - n];
    const double odd = single ? 0 : frame[n] - frame[length - n];
    const double* cosines = &cosines_[n * columns];
    const double* sines = &sines_[n * columns];
    double* const re = real[n % 2];
    double* const im = imaginary[n % 2];
    for (size_t k = 0; k < columns; ++k) {
      re[k] += even * cosines[k];
      im[k] += odd * sines[k];
    }
  }
  for (size_t k = 0; k <= quarter; ++k) {
    const double re = real[0][k] + real[1][k], im = imaginary[0][k] + imaginary[1][k];
    const double mirror_re = real[0][k] - real[1][k], mirror_im = imaginary[0][k] - imaginary[1][k];
    result[k] = re * re + im * im;
    result[half - k] = mirror_re * mirror_re + mirror_im * mirror_im;
  }
}

std::vector<float> LogMel::log_spectrum(std::span<const float> samples, size_t frames) const {
  const size_t length = options_.fft_length, hop = options_.hop_length;
  const size_t total = frames * hop;
  if (total <= length / 2)
    throw ShapeError("log-mel features", fmt::format("{} frames of {} samples", frames, hop),
                     fmt::format("more than {} samples are needed", length / 2));
  samples = samples.first(std::min(samples.size(), total));
  const auto end = static_cast<ptrdiff_t>(total);
  std::vector<double> frame(length), bins(length / 2 + 1);
  std::vector<float> result(frames * options_.mels);
  for (size_t f = 0; f < frames; ++f) {
    const ptrdiff_t first = static_cast<ptrdiff_t>(f * hop) - static_cast<ptrdiff_t>(length / 2);
    for (size_t n = 0; n < length; ++n) {
      ptrdiff_t at = std::abs(first + static_cast<ptrdiff_t>(n));
      if (at >= end) at = 2 * (end - 1) - at;
      const auto i = static_cast<size_t>(at);
      frame[n] = i < samples.size() ? samples[i] * window_[n] : 0;
    }
    power(frame, bins);
    for (size_t m = 0; m < filters_.size(); ++m) {
      double sum = 0;
      const Filter& filter = filters_[m];
      for (size_t k = 0; k < filter.weights.size(); ++k)
        sum += filter.weights[k] * bins[filter.first_bin + k];
      result[f * options_.mels + m] = static_cast<float>(std::log10(std::max(sum, 1e-10)));
    }
  }
  return result;
}

void LogMel::normalize(std::span<float> log_spectrum) {
  if (log_spectrum.empty()) return;
  const float least = *std::max_element(log_spectrum.begin(), log_spectrum.end()) - 8;
  for (float& value : log_spectrum) value = (std::max(value, least) + 4) / 4;
}

std::vector<float> LogMel::operator()(std::span<const float> samples, size_t frames) const {
  std::vector<float> features = log_spectrum(samples, frames);
  normalize(features);
  return features;
}

}  // namespace mulciber
