// The supported model families and their capabilities.
#pragma once

#include <span>

#include "checkpoints/checkpoint.h"
#include "models/core/capability.h"
#include "models/families/decoder_family.h"
#include "models/families/encoder_decoder_family.h"
#include "models/families/encoder_family.h"
#include "models/families/vision_family.h"
#include "models/families/vision_language_family.h"

namespace mulciber {

/// Which function reads a family's configuration (models/loading/read_architecture.h).
enum class ModelKind {
  kDecoder,
  kTextEncoder,
  kEncoderDecoder,
  kRecurrentTranslation,
  kVision,
  kVisionLanguage,
  kSpeech,
  kImageTextReader,
};

struct ModelFamily {
  const char* model_type;  // `model_type` of config.json
  ModelKind kind;
  CapabilitySet capabilities;
  const DecoderFamily* decoder = nullptr;                 // for kDecoder
  const EncoderFamily* encoder = nullptr;                 // for kTextEncoder
  const EncoderDecoderFamily* encoder_decoder = nullptr;  // for kEncoderDecoder
  const VisionFamily* vision = nullptr;                   // for kVision
  const VisionLanguageFamily* vision_language = nullptr;  // for kVisionLanguage
};
/// Every supported family.
std::span<const ModelFamily> model_families();

/// The family of a checkpoint; nullptr: it is not supported.
const ModelFamily* find_family(const Checkpoint& checkpoint);
/// The family of a checkpoint. Throws ModelError listing the supported families.
const ModelFamily& family_of(const Checkpoint& checkpoint);

}  // namespace mulciber
