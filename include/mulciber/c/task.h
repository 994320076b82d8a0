/* Mulciber for C: tasks in slices: recording, submission and partial results. C11. */
#ifndef MULCIBER_C_TASK_H
#define MULCIBER_C_TASK_H

#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for slices of mulciber_step(). Slices of mulciber_record() should have ended and been
 * reported to mulciber_completed(), or been discarded; otherwise what they use is kept until the
 * device is destroyed, and by then they must have ended. */
MULCIBER_API void mulciber_destroy_task(MulciberTask* task);

/* ---- Slices ---- */

typedef struct MulciberSlice {
  uint64_t number;     /* 1 is a task's first; 0: there was nothing to do */
  uint32_t dispatches; /* compute dispatches */
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
  MulciberSlice slice;   /* number 0: nothing was submitted */
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

/* Waits for slices that mulciber_step() submitted. */
MULCIBER_API MulciberStatus mulciber_wait(MulciberContext* context, MulciberTask* task);
MULCIBER_API VkBool32 mulciber_is_done(const MulciberTask* task);

/* Whether the last slice of a task for attention maps or embeddings was recorded or submitted:
 * copies of its results can be recorded then. */
MULCIBER_API VkBool32 mulciber_is_recorded(const MulciberTask* task);
MULCIBER_API void mulciber_cancel(MulciberTask* task);

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

/* ---- Texts ---- */

/* Gives the text so far; once the task is done, all of it. Valid until the next call with this
 * task. */
MULCIBER_API MulciberStatus mulciber_text(MulciberContext* context, MulciberTask* task,
                                          const char** text);

/* A text so far. Its pointers are valid until the next call with the task. */
typedef struct MulciberText {
  uint32_t size;
  VkBool32 complete; /* the task is done, and was not cancelled */
  const char* text;
  float score; /* the translation's score, if it ended here */
  uint32_t id_count;
  const uint32_t* ids;
  const char* const* tokens; /* readable text of each id */
  uint32_t source_count;     /* tokens of the translated text, or of the prompt */
  const uint32_t* source_ids;
  const char* const* source_tokens;
} MulciberText;

/* Gives the best hypothesis of a translation, or the known part of an answer. */
MULCIBER_API MulciberStatus mulciber_so_far(MulciberContext* context, MulciberTask* task,
                                            MulciberText* text);

/* Decode steps that have ended; for an answer, its tokens. */
MULCIBER_API uint32_t mulciber_steps(const MulciberTask* task);

#ifdef __cplusplus
}
#endif

#endif
