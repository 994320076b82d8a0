// C functions for text generation.
#include "mulciber/c/generator.h"

#include "capi/completions.h"
#include "capi/generator_report.h"
#include "capi/handles.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

static_assert(MULCIBER_KEY_VALUES_Q8_0 == static_cast<int>(KeyValueStorage::kQ8_0));

/// Storage that a MulciberGeneratorReport points to.
struct ShownDescription {
  GeneratorDescription found;
  std::vector<const char*> adapters;
  MulciberSampling sampling = {};
};

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

/// The parts of a task's prompt. A prompt of ids has one without a text.
std::vector<PromptPart> prompt_parts(const char* prompt, const MulciberGenerateInfo& info) {
  if (info.part_count == 0) return {{.text = prompt_text(prompt, info), .embeddings = {}}};
  if (prompt) throw SettingError("prompt", "is given beside parts", "give NULL for one of them");
  if (info.prompt_id_count > 0)
    throw SettingError("MulciberGenerateInfo::prompt_ids", "are given beside parts",
                       "leave one of them out");
  std::vector<PromptPart> parts;
  const auto* at = reinterpret_cast<const char*>(info.parts);
  for (uint32_t i = 0; i < info.part_count; ++i, at += given_to(info.parts, "parts").size)
    parts.push_back(prompt_part(reinterpret_cast<const MulciberPromptPart*>(at)));
  return parts;
}

/// Also stores the text in the task, for mulciber_text().
MulciberTask* completion_task(MulciberGenerator& generator, const std::vector<PromptPart>& prompt,
                              const MulciberGenerateInfo& info) {
  auto kept = std::make_unique<MulciberTask>();
  GenerateOptions options = generate_options(info, generator.adapters);
  options.on_text = [to = kept.get(), show = options.on_text](std::string_view piece) {
    to->text += piece;
    if (show) show(piece);
  };
  auto made = std::make_unique<GenerationTask>(generator.generator, prompt, options,
                                               generation_outputs(info.outputs));
  kept->generation = made.get();
  kept->task = std::move(made);
  return kept.release();
}

}  // namespace

std::shared_ptr<const void> fill_report(GeneratorDescription description,
                                        MulciberGeneratorReport& to) {
  auto shown = std::make_shared<ShownDescription>();
  shown->found = std::move(description);
  const GeneratorDescription& found = shown->found;
  const Sampling& sampling = found.default_sampling;
  shown->adapters = c_strings(found.adapters);
  shown->sampling = {.size = sizeof(MulciberSampling),
                     .temperature = sampling.temperature,
                     .top_k = sampling.top_k,
                     .top_p = sampling.top_p,
                     .min_p = sampling.min_p,
                     .typical_p = sampling.typical_p,
                     .repetition_penalty = sampling.repetition_penalty,
                     .presence_penalty = sampling.presence_penalty,
                     .frequency_penalty = sampling.frequency_penalty,
                     .penalty_window = sampling.penalty_window,
                     .seed = sampling.seed};
  to.context = found.context;
  to.family = found.family.c_str();
  to.sequences = found.sequences;
  to.vocabulary = found.vocabulary;
  to.width = found.width;
  to.layers = found.layers;
  to.heads = found.heads;
  to.key_values = static_cast<MulciberKeyValueStorage>(found.key_values);
  to.chat_template = found.chat_template;
  to.end_count = static_cast<uint32_t>(found.end_ids.size());
  to.end_ids = found.end_ids.data();
  to.adapter_count = static_cast<uint32_t>(shown->adapters.size());
  to.adapters = shown->adapters.data();
  to.default_sampling = &shown->sampling;
  return shown;
}

}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_load_generator(MulciberContext* context, MulciberDevice* device,
                                       const MulciberModel* model, const MulciberLoadInfo* from,
                                       MulciberGenerator** generator) {
  return guarded(context, [&] {
    given_to(generator, "generator") = nullptr;
    const GeneratorOptions options = generator_options(load_info(from));
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

MulciberStatus mulciber_trim_generator(MulciberContext* context, MulciberGenerator* generator,
                                       uint64_t* freed) {
  return guarded(context, [&] {
    if (freed) *freed = 0;
    const uint64_t bytes = given_to(generator, "generator").generator.trim();
    if (freed) *freed = bytes;
  });
}

MulciberStatus mulciber_predict_generator(MulciberContext* context, MulciberDevice* device,
                                          const MulciberModel* model, const MulciberLoadInfo* info,
                                          MulciberMemoryPrediction* prediction) {
  return guarded(context, [&] {
    give(prediction, "MulciberMemoryPrediction", [&](MulciberMemoryPrediction& to) {
      const MemoryPrediction found = TextGenerator::predict(*given_to(device, "device").device,
                                                            *given_to(model, "model").model,
                                                            generator_options(load_info(info)));
      to.weight_bytes = found.weight_bytes;
      to.context_bytes = found.context_bytes;
      to.key_value_bytes = found.key_value_bytes;
    });
  });
}

MulciberStatus mulciber_describe_generator(MulciberContext* context, MulciberGenerator* generator,
                                           MulciberGeneratorReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberGeneratorReport", [&](MulciberGeneratorReport& to) {
      MulciberGenerator& of = given_to(generator, "generator");
      of.described = fill_report(of.generator.describe(), to);
    });
  });
}

MulciberStatus mulciber_begin_generation(MulciberContext* context, MulciberGenerator* generator,
                                         const char* prompt, const MulciberGenerateInfo* from,
                                         MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    const auto info = optional_of_any_version(from, "MulciberGenerateInfo");
    refuse_fields({{info.image_count > 0, "images"},
                   {info.log_probabilities != 0, "log_probabilities"},
                   {info.likeliest > 0, "likeliest"},
                   {info.attention != 0, "attention"},
                   {info.shift != 0, "shift"},
                   {info.keep > 0, "keep"},
                   {info.prompt_lookup > 0, "prompt_lookup"},
                   {info.draft != nullptr, "draft"},
                   {info.draft_tokens > 0, "draft_tokens"},
                   {info.steps_per_submission > 0, "steps_per_submission"}},
                  "a task", "call mulciber_generate, or leave it out");
    *task = completion_task(given_to(generator, "generator"), prompt_parts(prompt, info), info);
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
