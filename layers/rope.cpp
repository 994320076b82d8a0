#include "layers/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "mulciber/error.h"

namespace mulciber {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

void check(uint32_t rotary_size, double base, const RopeScaling& scaling) {
  const auto refuse = [](std::string problem, std::string remedy) {
    throw ShapeError("rotary embedding", std::move(problem), std::move(remedy));
  };
  if (rotary_size == 0 || rotary_size % 2 != 0 || !(base > 1)) {
    refuse(fmt::format("{} elements with base {}", rotary_size, base),
           "their number must be even and the base above 1");
  }
  if (!scaling.frequency_factors.empty() && scaling.frequency_factors.size() != rotary_size / 2) {
    refuse(fmt::format("{} factors for {} frequencies", scaling.frequency_factors.size(),
                       rotary_size / 2),
           "give one for each");
  }
  const bool by_context = scaling.kind == RopeScalingKind::kLlama3 ||
                          scaling.kind == RopeScalingKind::kYarn ||
                          scaling.kind == RopeScalingKind::kLongRope;
  if (!(scaling.factor > 0) || (by_context && !(scaling.original_max_position_embeddings > 0)) ||
      (scaling.kind == RopeScalingKind::kLlama3 &&
       !(scaling.high_freq_factor > scaling.low_freq_factor && scaling.low_freq_factor > 0)) ||
      (scaling.kind == RopeScalingKind::kYarn &&
       !(scaling.beta_fast > 0 && scaling.beta_slow > 0))) {
    refuse(fmt::format("a scaling by {} from {} positions, factors {} and {}, betas {} and {}",
                       scaling.factor, scaling.original_max_position_embeddings,
                       scaling.low_freq_factor, scaling.high_freq_factor, scaling.beta_fast,
                       scaling.beta_slow),
           "all must be above 0, and the high factor above the low one");
  }
}

/// The share of a frequency that is not scaled; the rest is divided by the factor.
double llama3_extrapolation(const RopeScaling& scaling, double frequency) {
  const double turns = scaling.original_max_position_embeddings * frequency / kTurn;
  return std::clamp(
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor), 0.0,
      1.0);
}

/// The shares of all frequencies by YaRN, which blends linearly in their index.
std::vector<double> yarn_extrapolation(const RopeScaling& scaling, uint32_t rotary_size,
                                       double base) {
  const double size = rotary_size;
  // The index of the frequency that makes so many turns within the original context.
  const auto number_of = [&](double turns) {
    return size * std::log(scaling.original_max_position_embeddings / (turns * kTurn)) /
           (2 * std::log(base));
  };
  double low = number_of(scaling.beta_fast), high = number_of(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high) high += 0.001;
  std::vector<double> extrapolation(rotary_size / 2);
  for (size_t i = 0; i < extrapolation.size(); ++i) {
    extrapolation[i] = 1 - std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
  }
  return extrapolation;
}

}  // namespace

std::vector<double> rope_frequencies(uint32_t rotary_size, double base,
                                     const RopeScaling& scaling) {
  check(rotary_size, base, scaling);
  std::vector<double> extrapolation(rotary_size / 2, 0), frequencies(rotary_size / 2);
  if (scaling.kind == RopeScalingKind::kYarn)
    extrapolation = yarn_extrapolation(scaling, rotary_size, base);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double plain = std::pow(base, -2.0 * static_cast<double>(i) / rotary_size);
    if (scaling.kind == RopeScalingKind::kNone || scaling.kind == RopeScalingKind::kLongRope)
      extrapolation[i] = 1;
    if (scaling.kind == RopeScalingKind::kLlama3)
      extrapolation[i] = llama3_extrapolation(scaling, plain);
    frequencies[i] = extrapolation[i] * plain + (1 - extrapolation[i]) * plain / scaling.factor;
    if (!scaling.frequency_factors.empty()) frequencies[i] /= scaling.frequency_factors[i];
  }
  return frequencies;
}

double rope_magnitude(const RopeScaling& scaling) {
  const bool long_rope = scaling.kind == RopeScalingKind::kLongRope;
  if (scaling.kind != RopeScalingKind::kYarn && !long_rope) return 1;
  if (scaling.attention_factor) return *scaling.attention_factor;
  if (long_rope && scaling.factor <= 1) return 1;
  if (long_rope)
    return std::sqrt(1 +
                     std::log(scaling.factor) / std::log(scaling.original_max_position_embeddings));
  const auto by = [&](double scale) {
    return scaling.factor <= 1 ? 1 : 0.1 * scale * std::log(scaling.factor) + 1;
  };
  // A scale of 0 counts as absent, like in transformers.
  if (scaling.mscale.value_or(0) != 0 && scaling.mscale_all_dim.value_or(0) != 0) {
    return by(*scaling.mscale) / by(*scaling.mscale_all_dim);
  }
  return by(1);
}

std::vector<float> rope_angles(uint64_t positions, uint32_t rotary_size, double base,
                               const RopeScaling& scaling) {
  const std::vector<double> frequencies = rope_frequencies(rotary_size, base, scaling);
  const double magnitude = rope_magnitude(scaling);
  std::vector<float> angles(positions * rotary_size);
  for (uint64_t position = 0; position < positions; ++position) {
    float* cosines = &angles[position * rotary_size];
    for (size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      cosines[i] = static_cast<float>(magnitude * std::cos(angle));
      cosines[frequencies.size() + i] = static_cast<float>(magnitude * std::sin(angle));
    }
  }
  return angles;
}

}  // namespace mulciber
