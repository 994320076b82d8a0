// Angles of rotary position embeddings, for RopeOptions::angles (ops/rope.h), with the scalings
// that extend a model's context beyond its training. The formulas are those of Hugging Face
// transformers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace mulciber {

enum class RopeScalingKind {
  kNone,
  kLinear,    // every frequency divided by the factor (position interpolation: Chen et al. 2023,
              // arXiv:2306.15595)
  kLlama3,    // divides low frequencies, keeps high ones, blends between them
  kYarn,      // like kLlama3, other bounds, and a magnitude (Peng et al. 2023, arXiv:2309.00071)
  kLongRope,  // frequency_factors and a magnitude (Ding et al. 2024, arXiv:2402.13753)
};

/// Fields named as in `rope_scaling` (or `rope_parameters`) of config.json.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 1;
  double original_max_position_embeddings = 0;       // llama3, yarn, longrope: required
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  bool truncate = true;                    // yarn: the blend begins and ends at whole frequencies
  std::optional<double> attention_factor;  // yarn, longrope: the magnitude, where it is given
  std::optional<double> mscale, mscale_all_dim;  // yarn: or the numbers that it is computed from
  /// Each frequency is finally divided by its own factor (the tensor rope_freqs of GGUF files).
  /// Empty: no factors.
  std::vector<double> frequency_factors;
};

/// Radians per position for each of the rotary_size / 2 pairs: base^(-2 i / rotary_size), scaled.
/// Throws ShapeError when the number of factors is wrong, or when numbers fit no scaling.
std::vector<double> rope_frequencies(uint32_t rotary_size, double base,
                                     const RopeScaling& scaling = {});

/// The factor of cosines and sines in YaRN and LongRoPE; 1 otherwise.
double rope_magnitude(const RopeScaling& scaling);

/// (positions, rotary_size): for each position the cosines of all frequencies, then the sines,
/// times the magnitude. Computed in double precision, rounded once. Throws as rope_frequencies()
/// does.
std::vector<float> rope_angles(uint64_t positions, uint32_t rotary_size, double base,
                               const RopeScaling& scaling = {});

}  // namespace mulciber
