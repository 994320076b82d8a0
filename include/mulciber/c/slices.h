/* Mulciber for C: tasks in slices, recorded or submitted. The rules are those of
 * mulciber/embedding.h. C11. */
#ifndef MULCIBER_C_SLICES_H
#define MULCIBER_C_SLICES_H

#include <vulkan/vulkan_core.h>

#include "mulciber/c/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberSlice {
  uint32_t size;
  uint32_t dispatches; /* compute dispatches */
  uint64_t number;     /* 1 is a task's first; 0: there was nothing to do */
  double estimated_us; /* on the device */
} MulciberSlice;

/* Records dispatches that are expected to take budget_us into the application's command buffer,
 * outside of render passes. */
MULCIBER_API MulciberStatus mulciber_record(MulciberContext* context, MulciberTask* task,
                                            VkCommandBuffer commands, double budget_us,
                                            MulciberSlice* slice);

/* Tells the task that slices up to this number have ended on the device. 0 and numbers at or below
 * an earlier one change nothing. MULCIBER_ERROR_SETTING for a number that no slice has, or whose
 * slice was discarded. */
MULCIBER_API MulciberStatus mulciber_completed(MulciberContext* context, MulciberTask* task,
                                               uint64_t number);

/* Takes back a slice whose command buffer will never be submitted, because its frame was dropped,
 * and every slice that was recorded after it: the next mulciber_record() records their work again.
 * Nothing that was discarded may be submitted afterwards. MULCIBER_ERROR_SETTING for slices that
 * were never recorded, are completed, were discarded before, or were submitted by
 * mulciber_step(). */
MULCIBER_API MulciberStatus mulciber_discard(MulciberContext* context, MulciberTask* task,
                                             uint64_t number);

typedef struct MulciberSemaphores {
  uint32_t size;
  uint32_t wait_count;
  const VkSemaphore* waits;
  const VkPipelineStageFlags* wait_stages;
  const uint64_t* wait_values; /* for timeline semaphores; NULL: there are none */
  uint32_t signal_count;
  const VkSemaphore* signals;
  const uint64_t* signal_values;
} MulciberSemaphores;

typedef struct MulciberStep {
  uint32_t size;
  uint32_t dispatches;
  uint64_t number; /* as in MulciberSlice; 0: nothing was submitted */
  double estimated_us;
  VkBool32 waits;        /* nothing was submitted, because earlier slices still run */
  VkSemaphore semaphore; /* reaches `value` when the slice has ended; null without
                          * timelineSemaphore */
  uint64_t value;
} MulciberStep;

/* Submits dispatches that are expected to take budget_us; never waits. semaphores: may be NULL.
 * MULCIBER_ERROR_SETTING while slices of mulciber_record() are under way, as mulciber_record()
 * gives it while those of mulciber_step() are. */
MULCIBER_API MulciberStatus mulciber_step(MulciberContext* context, MulciberTask* task,
                                          double budget_us, const MulciberSemaphores* semaphores,
                                          MulciberStep* step);

/* Whether the last slice of a task for attention maps or embeddings was recorded or submitted:
 * copies of its results can be recorded then. */
MULCIBER_API VkBool32 mulciber_is_recorded(const MulciberTask* task);

/* Barriers at the beginning and end of every slice: stages of earlier work that it waits for, and
 * stages of later work that sees its writes. */
typedef struct MulciberBorders {
  uint32_t size;
  VkPipelineStageFlags waits_for_stages;
  VkAccessFlags waits_for_accesses;
  VkPipelineStageFlags shown_to_stages;
  VkAccessFlags shown_to_accesses;
} MulciberBorders;

MULCIBER_API MulciberStatus mulciber_borders(MulciberContext* context, MulciberBorders* borders);

#ifdef __cplusplus
}
#endif

#endif
