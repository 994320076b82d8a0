// Rotary position embedding as configurations describe it.
#pragma once

#include "layers/rope.h"
#include "models/config.h"

namespace mulciber {

/// One kind of layer's angles: what layers/rope.h makes tables of.
struct RopeConfig {
  uint32_t rotated = 0;  // components of a head
  double base = 10000;
  RopeScaling scaling;
};

struct RopeDefaults {
  uint32_t rotated = 0;
  double base = 10000;         // where the configuration names none
  uint32_t max_positions = 0;  // of the model
};

/// An object of Hugging Face's `rope_parameters` or `rope_scaling`: types default, linear, llama3
/// and yarn. Throws ModelError naming the key for any other type, and for heads that are rotated in
/// part.
RopeConfig read_rope(const ConfigReader& parameters, const RopeDefaults& defaults);

/// The same for a whole configuration: `rope_parameters`, or the older `rope_theta` and
/// `rope_scaling`. kind: the entry of rope_parameters for one kind of layer ("full_attention"),
/// nullptr where there is one for all.
RopeConfig read_rope_of(const ConfigReader& config, const char* kind, const RopeDefaults& defaults);

}  // namespace mulciber
