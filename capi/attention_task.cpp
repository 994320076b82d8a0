// C functions for attention maps.
#include "mulciber/c/attention_task.h"

#include "capi/handles.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

AttentionTask& attention_of(MulciberTask* task) {
  return part_of(given_to(task, "task"), &MulciberTask::attention, "attention maps",
                 "mulciber_begin_attention_maps");
}

MulciberTask* task_of(std::unique_ptr<AttentionTask> made) {
  AttentionTask* attention = made.get();
  return new MulciberTask{.task = std::move(made), .attention = attention};
}

Translation so_far_of(const MulciberTask& text) {
  return text.translation->done() ? text.translation->result() : text.translation->so_far();
}

Generation so_far_of(GenerationTask& answer) {
  return answer.done() ? answer.result() : answer.so_far();
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_begin_attention_maps(MulciberContext* context, MulciberTask* text,
                                             const MulciberAttentionInfo* from,
                                             MulciberTask** task) {
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    const auto info = of_any_version(from, "MulciberAttentionInfo");
    MulciberTask& of = given_to(text, "text");
    if (of.translation) {
      *task = task_of(std::make_unique<AttentionTask>(
          given_to(info.translator, "translator").translator, so_far_of(of), HeadMasks{},
          AttentionRoom{.source = info.source_room, .target = info.room}));
    } else {
      GenerationTask& completion = completion_of(of);
      *task = task_of(std::make_unique<AttentionTask>(
          given_to(info.generator, "generator").generator, so_far_of(completion), info.room));
    }
  });
}

MulciberStatus mulciber_restart_attention(MulciberContext* context, MulciberTask* task,
                                          MulciberTask* text) {
  return guarded(context, [&] {
    AttentionTask& maps = attention_of(task);
    MulciberTask& of = given_to(text, "text");
    if (of.translation)
      maps.restart(so_far_of(of));
    else
      maps.restart(so_far_of(completion_of(of)));
  });
}

uint32_t mulciber_attention_layers(const MulciberTask* task, MulciberAttentionKind kind) {
  const std::optional<AttentionKind> known = known_attention_kind(kind);
  return known && task && task->attention ? task->attention->layers(*known) : 0;
}

uint32_t mulciber_attention_heads(const MulciberTask* task, MulciberAttentionKind kind) {
  const std::optional<AttentionKind> known = known_attention_kind(kind);
  return known && task && task->attention ? task->attention->heads(*known) : 0;
}

MulciberStatus mulciber_attention_extent(MulciberContext* context, MulciberTask* task,
                                         MulciberAttentionKind kind, VkExtent2D* extent) {
  return guarded(context, [&] {
    given_to(extent, "extent") = {};
    *extent = attention_of(task).extent(attention_kind(kind));
  });
}

MulciberStatus mulciber_record_attention_image(MulciberContext* context, MulciberTask* task,
                                               VkCommandBuffer commands,
                                               const MulciberApplicationImage* image,
                                               const MulciberAttentionMap* map) {
  return guarded(context, [&] {
    attention_of(task).record_attention(given_handle(commands, "commands"),
                                        application_image(image), attention_map(map));
  });
}

MulciberStatus mulciber_record_attention_buffer(MulciberContext* context, MulciberTask* task,
                                                VkCommandBuffer commands,
                                                const MulciberApplicationBuffer* buffer,
                                                const MulciberAttentionMap* map) {
  return guarded(context, [&] {
    attention_of(task).record_attention(given_handle(commands, "commands"),
                                        application_buffer(buffer), attention_map(map));
  });
}

// Deprecated names of version 0.1.

MulciberStatus mulciber_begin_attention(MulciberContext* context, MulciberTranslator* translator,
                                        MulciberTask* translation, MulciberTask** task) {
  const MulciberStatus status = guarded(context, [&] {
    given_to(task, "task") = nullptr;
    // Throws where the translation is not done.
    part_of(given_to(translation, "translation"), &MulciberTask::translation, "translation",
            "mulciber_begin_translation")
        .result();
  });
  if (status != MULCIBER_OK) return status;
  MulciberAttentionInfo info = {sizeof(info)};
  info.translator = translator;
  return mulciber_begin_attention_maps(context, translation, &info, task);
}

MulciberStatus mulciber_begin_attention_of(MulciberContext* context, MulciberTranslator* translator,
                                           MulciberGenerator* generator, MulciberTask* text,
                                           uint32_t source_room, uint32_t room,
                                           MulciberTask** task) {
  const MulciberAttentionInfo info = {sizeof(info), source_room, room, translator, generator};
  return mulciber_begin_attention_maps(context, text, &info, task);
}
