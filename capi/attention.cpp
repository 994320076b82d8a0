// C functions for attention maps.
#include "capi/handles.h"
#include "capi/structures.h"

namespace mulciber::c {
namespace {

AttentionTask& attention_of(MulciberTask* task) {
  return given_to(given_to(task, "task").attention, "the task's attention");
}

}  // namespace
}  // namespace mulciber::c

MulciberStatus mulciber_begin_attention(MulciberContext* context, MulciberTranslator* translator,
                                        MulciberTask* translation, MulciberTask** task) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(task, "task") = nullptr;
    const auto found =
        given_to(given_to(translation, "translation").translation, "translation").result();
    auto made = std::make_unique<mulciber::AttentionTask>(
        given_to(translator, "translator").translator, found);
    mulciber::AttentionTask* attention = made.get();
    *task = new MulciberTask{.task = std::move(made), .attention = attention};
  });
}

VkBool32 mulciber_is_recorded(const MulciberTask* task) {
  if (!task) return VK_FALSE;
  return (task->attention && task->attention->recorded()) ||
         (task->embedding && task->embedding->recorded()) ||
         (task->image && task->image->recorded());
}

MulciberStatus mulciber_attention_extent(MulciberContext* context, MulciberTask* task,
                                         MulciberAttentionKind kind, VkExtent2D* extent) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    given_to(extent, "extent") = {};
    *extent = attention_of(task).extent(static_cast<mulciber::AttentionKind>(kind));
  });
}

MulciberStatus mulciber_record_attention_image(MulciberContext* context, MulciberTask* task,
                                               VkCommandBuffer commands,
                                               const MulciberHostImage* image,
                                               const MulciberAttentionMap* map) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    attention_of(task).record_attention(commands, host_image(image), attention_map(map));
  });
}

MulciberStatus mulciber_record_attention_buffer(MulciberContext* context, MulciberTask* task,
                                                VkCommandBuffer commands,
                                                const MulciberHostBuffer* buffer,
                                                const MulciberAttentionMap* map) {
  using namespace mulciber::c;
  return guarded(context, [&] {
    attention_of(task).record_attention(commands, host_buffer(buffer), attention_map(map));
  });
}
