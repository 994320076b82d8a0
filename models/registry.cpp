#include "models/registry.h"

#include <fmt/format.h>

#include "models/decoder_model.h"
#include "models/families/families.h"
#include "models/families/gguf_config.h"
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

template <ReadDecoder read>
std::unique_ptr<Model> open_decoder(Device& device, const Checkpoint& checkpoint,
                                    const ModelOptions& options) {
  return std::make_unique<DecoderModel>(device, checkpoint, options, read);
}

template <ReadDecoder read>
constexpr ModelFamily decoder(const char* model_type, const char* gguf_architecture) {
  return {model_type, gguf_architecture, open_decoder<read>, read};
}

constexpr ModelFamily kFamilies[] = {
    {"marian", nullptr, open<Marian>},
    {"bahdanau", nullptr, open<RecurrentTranslation>},
    {"luong", nullptr, open<RecurrentTranslation>},
    decoder<read_gpt2>("gpt2", "gpt2"),
    decoder<read_llama>("llama", "llama"),
    decoder<read_llama>("mistral", nullptr),
    decoder<read_qwen2>("qwen2", "qwen2"),
    decoder<read_qwen3>("qwen3", "qwen3"),
    decoder<read_gemma3>("gemma3_text", "gemma3"),
    decoder<read_gemma3_with_vision>("gemma3", nullptr),
};

const ModelFamily& family_of(const Checkpoint& checkpoint) {
  const GgufFile* gguf = checkpoint.gguf();
  const std::string type = gguf ? gguf_architecture(*gguf) : checkpoint.model_type();
  std::string known;
  for (const ModelFamily& family : kFamilies) {
    const char* name = gguf ? family.gguf_architecture : family.model_type;
    if (!name) continue;
    if (type == name) return family;
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

std::span<const ModelFamily> model_families() { return kFamilies; }

std::unique_ptr<Model> open_model(Device& device, const Checkpoint& checkpoint,
                                  const ModelOptions& options) {
  return family_of(checkpoint).open(device, checkpoint, options);
}

bool is_decoder(const Checkpoint& checkpoint) { return family_of(checkpoint).read != nullptr; }

ReadDecoder decoder_family(const Checkpoint& checkpoint) {
  const ModelFamily& family = family_of(checkpoint);
  if (!family.read)
    throw ModelError(checkpoint.path().string(),
                     fmt::format("is a {} model, which does not continue texts", family.model_type),
                     "give a decoder-only language model");
  return family.read;
}

}  // namespace mulciber
