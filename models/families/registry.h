// The model families there are, and what each can do.
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

/// What reads a family's configuration (models/loading/read_architecture.h).
enum class ModelKind {
  kDecoder,
  kTextEncoder,
  kEncoderDecoder,
  kRecurrentTranslation,
  kVision,
  kVisionLanguage,
  kSpeech,
  kPictureReader,
};

struct ModelFamily {
  const char* model_type;  // of config.json
  ModelKind kind;
  CapabilitySet capabilities;
  const DecoderFamily* decoder = nullptr;                 // of kDecoder
  const EncoderFamily* encoder = nullptr;                 // of kTextEncoder
  const EncoderDecoderFamily* encoder_decoder = nullptr;  // of kEncoderDecoder
  const VisionFamily* vision = nullptr;                   // of kVision
  const VisionLanguageFamily* vision_language = nullptr;  // of kVisionLanguage
};
/// Every family this library can run.
std::span<const ModelFamily> model_families();

/// nullptr when the checkpoint is of none of them.
const ModelFamily* find_family(const Checkpoint& checkpoint);
/// Throws ModelError naming the families there are when it is of none of them.
const ModelFamily& family_of(const Checkpoint& checkpoint);

}  // namespace mulciber
