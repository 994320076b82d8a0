#include "models/registry.h"

#include <vector>

#include <fmt/format.h>

#include "models/decoder_model.h"
#include "models/families/families.h"
#include "models/families/marian.h"
#include "models/families/recurrent_translation.h"
#include "mulciber/error.h"

namespace mulciber {
namespace {

template <typename Family>
std::unique_ptr<Model> open(Device& device, const Checkpoint& checkpoint,
                            const ModelOptions& options) {
  return std::make_unique<Family>(device, checkpoint, options);
}

std::vector<ModelFamily> all_families() {
  std::vector<ModelFamily> families = {{"marian", open<Marian>},
                                       {"bahdanau", open<RecurrentTranslation>},
                                       {"luong", open<RecurrentTranslation>}};
  for (const DecoderFamily* decoder : kDecoderFamilies)
    families.push_back({decoder->model_type, nullptr, decoder});
  return families;
}

/// nullptr: no such files are known of the family.
const char* name_in_files(const ModelFamily& family, bool gguf) {
  if (!gguf) return family.model_type;
  return family.decoder && family.decoder->gguf ? family.decoder->gguf->architecture : nullptr;
}

/// Whether a file of that architecture is the family's.
bool claims(const ModelFamily& family, const Checkpoint& checkpoint) {
  const char* key = checkpoint.gguf() ? family.decoder->gguf->only_with : nullptr;
  return !key || GgufMetadata(checkpoint).number(key, 0) != 0;
}

const ModelFamily& family_of(const Checkpoint& checkpoint) {
  const GgufFile* gguf = checkpoint.gguf();
  const std::string type = gguf ? gguf_architecture(*gguf) : checkpoint.model_type();
  std::string known;
  for (const ModelFamily& family : model_families()) {
    const char* name = name_in_files(family, gguf != nullptr);
    if (!name) continue;
    if (type == name && claims(family, checkpoint)) return family;
    if (!gguf || !family.decoder->gguf->only_with)
      known += (known.empty() ? "" : ", ") + std::string(name);
  }
  const std::string where = checkpoint.path().string();
  if (!gguf && !checkpoint.has_config())
    throw ModelError(where, "has no config.json",
                     "give a model folder as people download it, or a GGUF file");
  throw ModelError(where, fmt::format("is a model of type \"{}\"", printable(type)),
                   fmt::format("supported types: {}", known));
}

}  // namespace

std::span<const ModelFamily> model_families() {
  static const std::vector<ModelFamily> kFamilies = all_families();
  return kFamilies;
}

std::unique_ptr<Model> open_model(Device& device, const Checkpoint& checkpoint,
                                  const ModelOptions& options) {
  const ModelFamily& family = family_of(checkpoint);
  if (family.decoder)
    return std::make_unique<DecoderModel>(device, checkpoint, options, *family.decoder);
  return family.open(device, checkpoint, options);
}

bool is_decoder(const Checkpoint& checkpoint) { return family_of(checkpoint).decoder != nullptr; }

const DecoderFamily& decoder_family(const Checkpoint& checkpoint) {
  const ModelFamily& family = family_of(checkpoint);
  if (!family.decoder)
    throw ModelError(checkpoint.path().string(),
                     fmt::format("is a {} model, which does not continue texts", family.model_type),
                     "give a decoder-only language model");
  return *family.decoder;
}

}  // namespace mulciber
