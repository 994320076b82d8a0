// C functions for text generation.
#include "mulciber/c/generator.h"

#include "capi/handles.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

PromptPart prompt_part(const MulciberPromptPart* from) {
  const auto part = of_any_version(from, "MulciberPromptPart");
  PromptPart result = {.text = part.text ? part.text : "", .embeddings = {}, .tokens = part.tokens};
  if (part.tokens > 0)
    result.embeddings = application_buffer(part.embeddings);
  else
    given_to(part.text, "text");
  return result;
}

GenerationOutputs generation_outputs(const MulciberGenerationOutputs* from) {
  GenerationOutputs result;
  if (!from) return result;
  const auto outputs = of_any_version(from, "MulciberGenerationOutputs");
  if (outputs.logits) result.logits = application_buffer(outputs.logits);
  if (outputs.states) result.states = application_buffer(outputs.states);
  return result;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_generator(MulciberContext* context, MulciberDevice* device,
                                       const MulciberModel* model, const MulciberLoadInfo* from,
                                       MulciberGenerator** generator) {
  return guarded(context, [&] {
    given_to(generator, "generator") = nullptr;
    const MulciberLoadInfo info = load_info(from);
    const GeneratorOptions options = {.load = load_options(info), .context = info.context};
    *generator = new MulciberGenerator{
        TextGenerator(given_to(device, "device").device, given_to(model, "model").model, options)};
  });
}

MulciberStatus mulciber_new_conversation(MulciberContext* context,
                                         const MulciberGenerator* generator, uint32_t tokens,
                                         MulciberGenerator** conversation) {
  return guarded(context, [&] {
    given_to(conversation, "conversation") = nullptr;
    *conversation =
        new MulciberGenerator{given_to(generator, "generator").generator.conversation(tokens)};
  });
}

void mulciber_destroy_generator(MulciberGenerator* generator) { delete generator; }

uint32_t mulciber_vocabulary(const MulciberGenerator* generator) {
  return generator ? generator->generator.vocabulary() : 0;
}

uint32_t mulciber_generator_width(const MulciberGenerator* generator) {
  return generator ? generator->generator.width() : 0;
}

MulciberStatus mulciber_begin_generation(MulciberContext* context, MulciberGenerator* generator,
                                         const char* prompt, const MulciberGenerateInfo* from,
                                         MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    const auto info = optional_of_any_version(from, "MulciberGenerateInfo");
    std::vector<PromptPart> parts;
    if (info.part_count == 0)
      parts.push_back({.text = &given_to(prompt, "prompt"), .embeddings = {}});
    else if (prompt)
      throw SettingError("prompt", "is given beside parts", "give NULL for one of them");
    const auto* at = reinterpret_cast<const char*>(info.parts);
    for (uint32_t i = 0; i < info.part_count; ++i, at += given_to(info.parts, "parts").size)
      parts.push_back(prompt_part(reinterpret_cast<const MulciberPromptPart*>(at)));
    *task = completion_task(given_to(generator, "generator"), parts, from,
                            generation_outputs(info.outputs));
  });
}

MulciberStatus mulciber_save_snapshot(MulciberContext* context, MulciberGenerator* generator,
                                      const char* file) {
  return guarded(context, [&] {
    given_to(file, "file");
    given_to(generator, "generator").generator.save_cache(file);
  });
}

MulciberStatus mulciber_load_snapshot(MulciberContext* context, MulciberGenerator* generator,
                                      const char* file) {
  return guarded(context, [&] {
    given_to(file, "file");
    given_to(generator, "generator").generator.load_cache(file);
  });
}

MulciberStatus mulciber_take_snapshot(MulciberContext* context, MulciberGenerator* generator,
                                      size_t* size, void* bytes) {
  return guarded(context, [&] {
    give_bytes(given_to(generator, "generator").generator.save_cache(), size, bytes);
  });
}

MulciberStatus mulciber_restore_snapshot(MulciberContext* context, MulciberGenerator* generator,
                                         const void* bytes, size_t size) {
  return guarded(context, [&] {
    const auto* first = &given_to(static_cast<const std::byte*>(bytes), "bytes");
    given_to(generator, "generator").generator.load_cache(std::span(first, size));
  });
}

// Deprecated names of version 0.1.

MulciberStatus mulciber_begin_generation_of(MulciberContext* context, MulciberGenerator* generator,
                                            uint32_t count, const MulciberPromptPart* parts,
                                            const MulciberGenerateInfo* from,
                                            const MulciberGenerationOutputs* outputs,
                                            MulciberTask** task) {
  MulciberGenerateInfo info = {};
  const MulciberStatus status = guarded(context, [&] {
    given_to(task, "task") = nullptr;
    info = optional_of_any_version(from, "MulciberGenerateInfo");
  });
  if (status != MULCIBER_OK) return status;
  info.size = sizeof(info);
  info.parts = parts;
  info.part_count = count;
  info.outputs = outputs;
  return mulciber_begin_generation(context, generator, nullptr, &info, task);
}
