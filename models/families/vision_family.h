// The families of vision transformers: one record each, with everything that is specific to the
// family.
#pragma once

#include "checkpoints/checkpoint.h"
#include "models/core/capability.h"
#include "models/families/vision_config.h"

namespace mulciber {

struct VisionFamily {
  const char* model_type;  // `model_type` of config.json
  CapabilitySet capabilities;
  /// Reads config.json. Throws ModelError naming file and key.
  VisionConfig (*read)(const ConfigReader& config);
};

/// Dosovitskiy et al. 2021, arXiv:2010.11929.
extern const VisionFamily kVit;
/// Touvron et al. 2021, arXiv:2012.12877: a distillation token learns from a teacher.
extern const VisionFamily kDeit;
/// Oquab et al. 2023, arXiv:2304.07193.
extern const VisionFamily kDinov2;
/// Radford et al. 2021, arXiv:2103.00020.
extern const VisionFamily kClip;
/// Zhai et al. 2023, arXiv:2303.15343.
extern const VisionFamily kSiglip;

/// Read the tower of CLIP or SigLIP, up to the hidden states of its last layer, for models that
/// contain it. The configuration must have every size. Throw ModelError naming file and key.
VisionTower read_clip_tower(const ConfigReader& config);
VisionTower read_siglip_tower(const ConfigReader& config);

inline constexpr const VisionFamily* kVisionFamilies[] = {&kVit, &kDeit, &kDinov2, &kClip,
                                                          &kSiglip};

}  // namespace mulciber
