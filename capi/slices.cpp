// C functions for tasks in slices.
#include "mulciber/c/slices.h"

#include "capi/handles.h"
#include "capi/structures.h"

using namespace mulciber;
using namespace mulciber::c;

MulciberStatus mulciber_record(MulciberContext* context, MulciberTask* task,
                               VkCommandBuffer commands, double budget_us, MulciberSlice* slice) {
  return guarded(context, [&] {
    give(slice, "MulciberSlice", [&](MulciberSlice& to) {
      FrameTask& of = *given_to(task, "task").task;
      const FrameSlice recorded = of.record(given_handle(commands, "commands"), budget_us);
      to.dispatches = recorded.dispatches;
      to.number = recorded.number;
      to.estimated_us = recorded.estimated_us;
    });
  });
}

MulciberStatus mulciber_completed(MulciberContext* context, MulciberTask* task, uint64_t number) {
  return guarded(context, [&] { given_to(task, "task").task->completed(number); });
}

MulciberStatus mulciber_discard(MulciberContext* context, MulciberTask* task, uint64_t number) {
  return guarded(context, [&] { given_to(task, "task").task->discard(number); });
}

MulciberStatus mulciber_step(MulciberContext* context, MulciberTask* task, double budget_us,
                             const MulciberSemaphores* semaphores, MulciberStep* step) {
  return guarded(context, [&] {
    give(step, "MulciberStep", [&](MulciberStep& to) {
      const FrameStep made =
          given_to(task, "task").task->step(budget_us, frame_semaphores(semaphores));
      to.dispatches = made.slice.dispatches;
      to.number = made.slice.number;
      to.estimated_us = made.slice.estimated_us;
      to.waits = made.waits;
      to.semaphore = made.semaphore;
      to.value = made.value;
    });
  });
}

VkBool32 mulciber_is_recorded(const MulciberTask* task) {
  if (!task) return VK_FALSE;
  return (task->attention && task->attention->recorded()) ||
         (task->embedding && task->embedding->recorded()) ||
         (task->image && task->image->recorded());
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
