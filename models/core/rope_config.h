// Rotary position embedding in configurations.
#pragma once

#include <optional>

#include "layers/rope.h"
#include "models/core/config.h"

namespace mulciber {

/// Which elements of a head form a pair.
enum class RotaryPairs {
  kHalves,      // i and i + half of the rotated ones: Black et al. 2022 (GPT-NeoX),
                // arXiv:2204.06745
  kNeighbours,  // 2 i and 2 i + 1: Su et al. 2021, arXiv:2104.09864
};

/// A rotary position embedding, of which layers/rope.h makes tables.
struct RopeConfig {
  uint32_t rotated = 0;  // elements of a head, from its first one on
  double base = 10000;
  RopeScaling scaling;
  /// LongRoPE: scaling for contexts longer than scaling.original_max_position_embeddings.
  std::optional<RopeScaling> long_scaling;
  RotaryPairs pairs = RotaryPairs::kHalves;
};

struct RopeDefaults {
  uint32_t head_size = 0;
  double base = 10000;                       // used if the configuration sets none
  uint32_t context = 0;                      // the model's context
  double share = 1;                          // share of a head that rotates
  std::optional<double> original_positions;  // if the whole configuration has them
};

/// Reads an object of Hugging Face's `rope_parameters` or `rope_scaling`: types default, dynamic,
/// linear, llama3, yarn and longrope. `partial_rotary_factor` is the share of a head that rotates.
/// Throws ModelError naming the key for any other type.
RopeConfig read_rope(const ConfigReader& parameters, const RopeDefaults& defaults);

/// Reads a whole configuration: `rope_parameters`, or the older `rope_theta`,
/// `partial_rotary_factor` and `rope_scaling`. kind: the entry of rope_parameters for one kind of
/// layer ("full_attention"); nullptr: one object describes all layers.
RopeConfig read_rope_of(const ConfigReader& config, const char* kind, const RopeDefaults& defaults);

}  // namespace mulciber
