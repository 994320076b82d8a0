// The families that read pictures: one record each, which says all that this library knows of them.
#pragma once

#include "checkpoints/checkpoint.h"
#include "models/core/capability.h"
#include "models/families/vision_config.h"

namespace mulciber {

struct VisionFamily {
  const char* model_type;  // of config.json
  CapabilitySet capabilities;
  /// Throws ModelError naming file and key.
  VisionConfig (*read)(const ConfigReader& config);
};

/// Dosovitskiy et al. 2021, arXiv:2010.11929.
extern const VisionFamily kVit;
/// Touvron et al. 2021, arXiv:2012.12877: a second token learns from a teacher.
extern const VisionFamily kDeit;
/// Oquab et al. 2023, arXiv:2304.07193.
extern const VisionFamily kDinov2;
/// Radford et al. 2021, arXiv:2103.00020.
extern const VisionFamily kClip;
/// Zhai et al. 2023, arXiv:2303.15343.
extern const VisionFamily kSiglip;

/// The tower of CLIP, or of SigLIP, up to the states of its last layer: what other models have of
/// them. Every size is in the configuration. Throws ModelError naming file and key.
PictureTower read_clip_tower(const ConfigReader& config);
PictureTower read_siglip_tower(const ConfigReader& config);

inline constexpr const VisionFamily* kVisionFamilies[] = {&kVit, &kDeit, &kDinov2, &kClip,
                                                          &kSiglip};

}  // namespace mulciber
