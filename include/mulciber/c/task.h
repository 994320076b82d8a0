/* Mulciber for C: tasks and their partial results. mulciber_run() runs them without Vulkan's types,
 * mulciber/c/slices.h in frames. C11. */
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

/* Waits for slices that mulciber_step() submitted. */
MULCIBER_API MulciberStatus mulciber_wait(MulciberContext* context, MulciberTask* task);

/* Waits for at most timeout_ns nanoseconds; 0 only looks. ended: whether the slices that
 * mulciber_step() submitted have ended. */
MULCIBER_API MulciberStatus mulciber_wait_for(MulciberContext* context, MulciberTask* task,
                                              uint64_t timeout_ns, MulciberBool* ended);

/* Submits dispatches that are expected to take budget_us microseconds of device time, at least one
 * while any is left, and waits for them. done: as mulciber_is_done(). A program that calls it in a
 * loop can show the text so far in between. MULCIBER_ERROR_SETTING while slices of
 * mulciber_record() are under way. */
MULCIBER_API MulciberStatus mulciber_run(MulciberContext* context, MulciberTask* task,
                                         double budget_us, MulciberBool* done);

MULCIBER_API MulciberBool mulciber_is_done(const MulciberTask* task);

MULCIBER_API void mulciber_cancel(MulciberTask* task);

/* ---- Texts ---- */

/* Gives the text so far; once the task is done, all of it. Valid until the next call with this
 * task. */
MULCIBER_API MulciberStatus mulciber_text(MulciberContext* context, MulciberTask* task,
                                          const char** text);

/* A text so far. Its pointers are valid until the next call with the task. */
typedef struct MulciberText {
  uint32_t size;
  MulciberBool complete; /* the task is done, and was not cancelled */
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
