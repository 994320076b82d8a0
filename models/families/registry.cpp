#include "models/families/registry.h"

#include <vector>

#include <fmt/format.h>

#include "models/core/architecture.h"
#include "models/families/families.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

std::vector<ModelFamily> all_families() {
  std::vector<ModelFamily> families = {
      {"bahdanau", ModelKind::kRecurrentTranslation, {Capability::kTranslate}},
      {"luong", ModelKind::kRecurrentTranslation, {Capability::kTranslate}},
      {"whisper", ModelKind::kSpeech, {Capability::kHear}},
      {"vision-encoder-decoder", ModelKind::kImageTextReader, {Capability::kReadImageText}},
  };
  for (const EncoderDecoderFamily* family : kEncoderDecoderFamilies)
    families.push_back({.model_type = family->model_type,
                        .kind = ModelKind::kEncoderDecoder,
                        .capabilities = family->rewrites ? CapabilitySet{Capability::kTranslate,
                                                                         Capability::kRewriteText}
                                                         : CapabilitySet{Capability::kTranslate},
                        .encoder_decoder = family});
  for (const DecoderFamily* family : kDecoderFamilies)
    families.push_back({.model_type = family->model_type,
                        .kind = ModelKind::kDecoder,
                        .capabilities = {Capability::kContinueText, Capability::kEncodeText},
                        .decoder = family});
  for (const EncoderFamily* family : kEncoderFamilies)
    families.push_back(
        {.model_type = family->model_type,
         .kind = ModelKind::kTextEncoder,
         .capabilities = {Capability::kEncodeText, Capability::kClassify, Capability::kAnswer},
         .encoder = family});
  for (const VisionFamily* family : kVisionFamilies)
    families.push_back({.model_type = family->model_type,
                        .kind = ModelKind::kVision,
                        .capabilities = family->capabilities,
                        .vision = family});
  for (const VisionLanguageFamily* family : kVisionLanguageFamilies)
    families.push_back({.model_type = family->model_type,
                        .kind = ModelKind::kVisionLanguage,
                        .capabilities = {Capability::kContinueText, Capability::kSeeImages},
                        .vision_language = family});
  return families;
}

/// The family's GGUF description; nullptr: no GGUF files of it are known.
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
