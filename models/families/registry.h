// The model families there are, and what each can do.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "checkpoints/checkpoint.h"
#include "models/core/architecture.h"
#include "models/core/capability.h"
#include "models/families/decoder_family.h"
#include "models/families/encoder_decoder_family.h"
#include "models/families/encoder_family.h"
#include "models/families/vision_family.h"
#include "models/families/vision_language_family.h"

namespace mulciber {

struct ModelFamily {
  const char* model_type;  // of config.json
  CapabilitySet capabilities;
  /// Reads and checks the configuration. Throws ModelError naming file and key.
  std::unique_ptr<const Architecture> (*read)(const Checkpoint& checkpoint);
  const DecoderFamily* decoder = nullptr;                 // of decoder-only families
  const EncoderFamily* encoder = nullptr;                 // of encoder-only ones
  const EncoderDecoderFamily* encoder_decoder = nullptr;  // of encoder-decoder Transformers
  const VisionFamily* vision = nullptr;                   // of those that read pictures
  const VisionLanguageFamily* vision_language = nullptr;  // of language models that see them
};
/// Every family this library can run.
std::span<const ModelFamily> model_families();

/// `model_type` of config.json or `general.architecture` of a GGUF file, or "".
std::string model_type(const Checkpoint& checkpoint);
/// nullptr when the checkpoint is of none of them.
const ModelFamily* find_family(const Checkpoint& checkpoint);
/// Throws ModelError naming the families there are when it is of none of them.
const ModelFamily& family_of(const Checkpoint& checkpoint);

}  // namespace mulciber
