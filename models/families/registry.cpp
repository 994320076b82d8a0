#include "models/families/registry.h"

#include <vector>

#include <fmt/format.h>

#include "models/encoding/text_encoder_model.h"
#include "models/families/families.h"
#include "models/generation/decoder_architecture.h"
#include "models/speech/whisper_model.h"
#include "models/translation/encoder_decoder_architecture.h"
#include "models/translation/recurrent_translation.h"
#include "models/vision/picture_reader_model.h"
#include "models/vision/vision_language_model.h"
#include "models/vision/vision_model.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

std::vector<ModelFamily> all_families() {
  std::vector<ModelFamily> families = {
      {"bahdanau", {Capability::kTranslate}, read_recurrent_translation},
      {"luong", {Capability::kTranslate}, read_recurrent_translation},
      {"whisper", {Capability::kHear}, read_whisper},
      {"vision-encoder-decoder", {Capability::kReadPictures}, read_picture_reader},
  };
  for (const EncoderDecoderFamily* family : kEncoderDecoderFamilies)
    families.push_back({family->model_type,
                        family->rewrites
                            ? CapabilitySet{Capability::kTranslate, Capability::kRewriteText}
                            : CapabilitySet{Capability::kTranslate},
                        read_encoder_decoder, nullptr, nullptr, family});
  for (const DecoderFamily* family : kDecoderFamilies)
    families.push_back({family->model_type,
                        {Capability::kContinueText, Capability::kEncodeText},
                        read_decoder,
                        family});
  for (const EncoderFamily* family : kEncoderFamilies)
    families.push_back({family->model_type,
                        {Capability::kEncodeText, Capability::kClassify, Capability::kAnswer},
                        read_text_encoder,
                        nullptr,
                        family});
  for (const VisionFamily* family : kVisionFamilies)
    families.push_back(
        {family->model_type, family->capabilities, read_vision, nullptr, nullptr, nullptr, family});
  for (const VisionLanguageFamily* family : kVisionLanguageFamilies)
    families.push_back({family->model_type,
                        {Capability::kContinueText, Capability::kSeePictures},
                        read_vision_language,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr,
                        family});
  return families;
}

/// nullptr: no such files are known of the family.
const GgufFamily* gguf_of(const ModelFamily& family) {
  if (family.encoder) return family.encoder->gguf ? &family.encoder->gguf->files : nullptr;
  return family.decoder && family.decoder->gguf ? &*family.decoder->gguf : nullptr;
}

bool is_of(const Checkpoint& checkpoint, const std::string& type, const ModelFamily& family) {
  if (!checkpoint.gguf()) return type == family.model_type;
  const GgufFamily* files = gguf_of(family);
  if (!files || type != files->architecture) return false;
  return !files->only_with || GgufMetadata(checkpoint).number(files->only_with, 0) != 0;
}

}  // namespace

std::span<const ModelFamily> model_families() {
  static const std::vector<ModelFamily> families = all_families();
  return families;
}

std::string model_type(const Checkpoint& checkpoint) {
  return checkpoint.gguf() ? gguf_architecture(*checkpoint.gguf()) : checkpoint.model_type();
}

const ModelFamily* find_family(const Checkpoint& checkpoint) {
  const std::string type = model_type(checkpoint);
  for (const ModelFamily& family : model_families())
    if (is_of(checkpoint, type, family)) return &family;
  return nullptr;
}

const ModelFamily& family_of(const Checkpoint& checkpoint) {
  if (const ModelFamily* family = find_family(checkpoint)) return *family;
  const std::string where = checkpoint.path().string();
  if (!checkpoint.gguf() && !checkpoint.has_config())
    throw ModelError(where, "has no config.json",
                     "give a model folder as people download it, or a GGUF file");
  std::string known;
  for (const ModelFamily& family : model_families()) {
    const GgufFamily* files = gguf_of(family);
    if (checkpoint.gguf() && (!files || files->only_with)) continue;
    known += (known.empty() ? "" : ", ") +
             std::string(checkpoint.gguf() ? files->architecture : family.model_type);
  }
  throw ModelError(where,
                   fmt::format("is a model of type \"{}\"", printable(model_type(checkpoint))),
                   fmt::format("supported types: {}", known));
}

}  // namespace mulciber
