// C functions for embeddings of tasks.
#include "mulciber/c/vector.h"

#include <algorithm>

#include "capi/handles.h"
#include "capi/structures.h"
#include "mulciber/image_task.h"

namespace mulciber::c {
namespace {

/// Calls `call` with the EmbeddingTask or ImageTask behind a handle.
template <typename Call>
auto with_vector(MulciberTask* task, const Call& call) {
  if (ImageTask* image = given_to(task, "task").image) return call(*image);
  return call(part_of(*task, &MulciberTask::embedding, "embedding",
                      "mulciber_begin_embedding or mulciber_begin_image"));
}

}  // namespace
}  // namespace mulciber::c

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_record_vector(MulciberContext* context, MulciberTask* task,
                                      VkCommandBuffer commands,
                                      const MulciberApplicationBuffer* buffer) {
  return guarded(context, [&] {
    with_vector(task, [&](auto& of) {
      of.record_vector(given_handle(commands, "commands"), application_buffer(buffer));
    });
  });
}

MulciberStatus mulciber_record_states(MulciberContext* context, MulciberTask* task,
                                      VkCommandBuffer commands,
                                      const MulciberApplicationBuffer* buffer) {
  return guarded(context, [&] {
    with_vector(task, [&](auto& of) {
      of.record_states(given_handle(commands, "commands"), application_buffer(buffer));
    });
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
