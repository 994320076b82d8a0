// C functions for tasks: partial results, and outputs that stay on the device.
#include "mulciber/mulciber_c_tasks.h"

#include <algorithm>

#include "capi/handles.h"
#include "capi/structures.h"
#include "mulciber/image_task.h"

namespace mulciber::c {
namespace {

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  for (const std::string& text : texts) result.push_back(text.c_str());
  return result;
}

/// Storage that a MulciberText points to.
struct ShownText {
  Translation found;
  std::vector<const char*> tokens, source_tokens;
};

struct ShownBeams {
  std::vector<Beam> found;
  std::vector<MulciberBeam> list;
};

Translation text_of(MulciberTask& task) {
  const bool done = task.task->done();
  if (task.translation) {
    Translation found = done ? task.translation->result() : Translation{};
    return found.complete ? found : task.translation->so_far();
  }
  const GenerationTask& answer = given_to(task.generation, "the task's text");
  const Generation found = done ? task.generation->result() : answer.so_far();
  Translation result = {.text = found.text, .ids = found.ids, .source_ids = found.prompt_ids};
  result.complete = done && found.end != GenerateEnd::kCancelled;
  for (const uint32_t id : result.ids) result.tokens.push_back(answer.token_text(id));
  for (const uint32_t id : result.source_ids)
    result.source_tokens.push_back(id == kNoTokenId ? "" : answer.token_text(id));
  return result;
}

MulciberTask* task_of(std::unique_ptr<AttentionTask> made) {
  AttentionTask* attention = made.get();
  return new MulciberTask{.task = std::move(made), .attention = attention};
}

MulciberTask* task_of(std::unique_ptr<EmbeddingTask> made) {
  EmbeddingTask* embedding = made.get();
  return new MulciberTask{.task = std::move(made), .embedding = embedding};
}

/// Calls `call` with the EmbeddingTask or ImageTask behind a handle.
template <typename Call>
auto with_vector(MulciberTask* task, const Call& call) {
  if (ImageTask* image = given_to(task, "task").image) return call(*image);
  return call(given_to(task->embedding, "the task's vector"));
}

Translation so_far_of(const MulciberTask& text) {
  return text.translation->done() ? text.translation->result() : text.translation->so_far();
}

Generation so_far_of(GenerationTask& answer) {
  return answer.done() ? answer.result() : answer.so_far();
}

PromptPart prompt_part(const MulciberPromptPart* from) {
  const auto part = of_any_version(from, "MulciberPromptPart");
  PromptPart result = {.text = part.text ? part.text : "", .embeddings = {}, .tokens = part.tokens};
  if (part.tokens > 0)
    result.embeddings = host_buffer(part.embeddings);
  else
    given_to(part.text, "text");
  return result;
}

Grammar grammar_of(MulciberGrammarKind kind, const char* text) {
  switch (kind) {
    case MULCIBER_GRAMMAR_JSON_SCHEMA: return Grammar::json_schema(&given_to(text, "text"));
    case MULCIBER_GRAMMAR_JSON_OBJECT: return Grammar::json_object();
    case MULCIBER_GRAMMAR_REGEX: return Grammar::regex(&given_to(text, "text"));
    case MULCIBER_GRAMMAR_GBNF: return Grammar::gbnf(&given_to(text, "text"));
    default: break;
  }
  throw SettingError("kind", fmt::format("is {}", static_cast<int>(kind)),
                     "give one of MulciberGrammarKind");
}

GenerationOutputs generation_outputs(const MulciberGenerationOutputs* from) {
  GenerationOutputs result;
  if (!from) return result;
  const auto outputs = of_any_version(from, "MulciberGenerationOutputs");
  if (outputs.logits) result.logits = host_buffer(outputs.logits);
  if (outputs.states) result.states = host_buffer(outputs.states);
  return result;
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_describe_device(MulciberContext* context, const MulciberDevice* device,
                                        MulciberDeviceReport* report) {
  return guarded(context, [&] {
    give(report, "MulciberDeviceReport", [&](MulciberDeviceReport& to) {
      DeviceDescription& found = context->description;
      found = describe(*given_to(device, "device").device);
      to.software = found.software;
      to.name = found.name.c_str();
      to.driver = found.driver.c_str();
      to.memory_bytes = found.memory_bytes;
      to.queue_priority = static_cast<MulciberQueuePriority>(found.queue_priority);
      to.occupancy_priority = found.occupancy_priority;
    });
  });
}

MulciberStatus mulciber_trim(MulciberContext* context, MulciberTranslator* translator) {
  return guarded(context, [&] { given_to(translator, "translator").translator.trim(); });
}

MulciberStatus mulciber_borders(MulciberContext* context, MulciberBorders* borders) {
  return guarded(context, [&] {
    give(borders, "MulciberBorders", [](MulciberBorders& to) {
      const FrameBorders found = FrameTask::borders();
      to.waits_for_stages = found.waits_for_stages;
      to.waits_for_accesses = found.waits_for_accesses;
      to.shown_to_stages = found.shown_to_stages;
      to.shown_to_accesses = found.shown_to_accesses;
    });
  });
}

MulciberStatus mulciber_so_far(MulciberContext* context, MulciberTask* task, MulciberText* text) {
  return guarded(context, [&] {
    give(text, "MulciberText", [&](MulciberText& to) {
      MulciberTask& of = given_to(task, "task");
      auto shown = std::make_shared<ShownText>();
      shown->found = text_of(of);
      const Translation& found = shown->found;
      shown->tokens = pointers(found.tokens);
      shown->source_tokens = pointers(found.source_tokens);
      to.complete = found.complete;
      to.text = found.text.c_str();
      to.score = found.score;
      to.id_count = static_cast<uint32_t>(found.ids.size());
      to.ids = found.ids.data();
      to.tokens = shown->tokens.data();
      to.source_count = static_cast<uint32_t>(found.source_ids.size());
      to.source_ids = found.source_ids.data();
      to.source_tokens = shown->source_tokens.data();
      of.shown = std::move(shown);
    });
  });
}

uint32_t mulciber_steps(const MulciberTask* task) {
  if (task && task->translation) return task->translation->steps();
  if (!task || !task->generation) return 0;
  return static_cast<uint32_t>(task->generation->tokens());
}

MulciberStatus mulciber_beams(MulciberContext* context, MulciberTask* task, uint32_t* count,
                              const MulciberBeam** beams) {
  return guarded(context, [&] {
    given_to(count, "count") = 0;
    given_to(beams, "beams") = nullptr;
    MulciberTask& of = given_to(task, "task");
    auto shown = std::make_shared<ShownBeams>();
    shown->found = given_to(of.translation, "the task's translation").beams();
    for (const Beam& beam : shown->found)
      shown->list.push_back({beam.text.c_str(), beam.score, beam.finished,
                             static_cast<uint32_t>(beam.ids.size()), beam.ids.data()});
    *count = static_cast<uint32_t>(shown->list.size());
    *beams = shown->list.data();
    of.shown = std::move(shown);
  });
}

MulciberStatus mulciber_begin_attention_of(MulciberContext* context, MulciberTranslator* translator,
                                           MulciberGenerator* generator, MulciberTask* text,
                                           uint32_t source_room, uint32_t room,
                                           MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    MulciberTask& of = given_to(text, "text");
    if (of.translation)
      *task = task_of(std::make_unique<AttentionTask>(
          given_to(translator, "translator").translator, so_far_of(of), HeadMasks{},
          AttentionRoom{.source = source_room, .target = room}));
    else
      *task = task_of(std::make_unique<AttentionTask>(
          given_to(generator, "generator").generator,
          so_far_of(given_to(of.generation, "the task's text")), room));
  });
}

MulciberStatus mulciber_restart_attention(MulciberContext* context, MulciberTask* task,
                                          MulciberTask* text) {
  return guarded(context, [&] {
    AttentionTask& maps = given_to(given_to(task, "task").attention, "the task's attention");
    MulciberTask& of = given_to(text, "text");
    if (of.translation)
      maps.restart(so_far_of(of));
    else
      maps.restart(so_far_of(given_to(of.generation, "the task's text")));
  });
}

uint32_t mulciber_attention_layers(const MulciberTask* task, MulciberAttentionKind kind) {
  if (!task || !task->attention) return 0;
  return task->attention->layers(static_cast<AttentionKind>(kind));
}

uint32_t mulciber_attention_heads(const MulciberTask* task, MulciberAttentionKind kind) {
  if (!task || !task->attention) return 0;
  return task->attention->heads(static_cast<AttentionKind>(kind));
}

MulciberStatus mulciber_begin_embedding(MulciberContext* context, MulciberTextEncoder* encoder,
                                        const char* text, const MulciberEmbedInfo* info,
                                        MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    *task = task_of(std::make_unique<EmbeddingTask>(given_to(encoder, "encoder").encoder,
                                                    std::string(&given_to(text, "text")),
                                                    embed_options(info)));
  });
}

MulciberStatus mulciber_begin_embedding_of_rows(MulciberContext* context,
                                                MulciberTextEncoder* encoder,
                                                const MulciberHostBuffer* rows, uint32_t tokens,
                                                const MulciberEmbedInfo* info,
                                                MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    *task = task_of(std::make_unique<EmbeddingTask>(
        given_to(encoder, "encoder").encoder, host_buffer(rows), tokens, embed_options(info)));
  });
}

uint32_t mulciber_embedding_width(const MulciberTextEncoder* encoder) {
  return encoder ? encoder->encoder.embedding_width() : 0;
}

uint32_t mulciber_embedding_tokens(const MulciberTask* task) {
  return task && task->embedding ? task->embedding->tokens() : 0;
}

MulciberStatus mulciber_record_vector(MulciberContext* context, MulciberTask* task,
                                      VkCommandBuffer commands, const MulciberHostBuffer* buffer) {
  return guarded(context, [&] {
    with_vector(task, [&](auto& of) { of.record_vector(commands, host_buffer(buffer)); });
  });
}

MulciberStatus mulciber_record_states(MulciberContext* context, MulciberTask* task,
                                      VkCommandBuffer commands, const MulciberHostBuffer* buffer) {
  return guarded(context, [&] {
    with_vector(task, [&](auto& of) { of.record_states(commands, host_buffer(buffer)); });
  });
}

MulciberStatus mulciber_vector(MulciberContext* context, MulciberTask* task, float* vector) {
  return guarded(context, [&] {
    given_to(vector, "vector");
    with_vector(task, [&](auto& of) {
      const auto found = of.result();
      if (!found.complete)
        throw SettingError("task", "was cancelled", "let it come to its end, or begin another");
      std::copy(found.values.begin(), found.values.end(), vector);
    });
  });
}

MulciberStatus mulciber_make_grammar(MulciberContext* context, MulciberGrammarKind kind,
                                     const char* text, MulciberGrammar** grammar) {
  return guarded(context, [&] {
    given_to(grammar, "grammar") = nullptr;
    *grammar = new MulciberGrammar{grammar_of(kind, text)};
  });
}

void mulciber_destroy_grammar(MulciberGrammar* grammar) { delete grammar; }

MulciberStatus mulciber_begin_generation_of(MulciberContext* context, MulciberGenerator* generator,
                                            uint32_t count, const MulciberPromptPart* parts,
                                            const MulciberGenerateInfo* info,
                                            const MulciberGenerationOutputs* outputs,
                                            MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    std::vector<PromptPart> prompt;
    const auto* at = reinterpret_cast<const char*>(parts);
    for (uint32_t i = 0; i < count; ++i, at += given_to(parts, "parts").size)
      prompt.push_back(prompt_part(reinterpret_cast<const MulciberPromptPart*>(at)));
    *task =
        answer_task(given_to(generator, "generator"), prompt, info, generation_outputs(outputs));
  });
}

uint32_t mulciber_vocabulary(const MulciberGenerator* generator) {
  return generator ? generator->generator.vocabulary() : 0;
}

uint32_t mulciber_generator_width(const MulciberGenerator* generator) {
  return generator ? generator->generator.width() : 0;
}
