/* Mulciber for C: continuous batching of translations. Many texts share one model, and each joins
 * and leaves a running beam search between two steps of the others. The rules are those of
 * mulciber/batch_translator.h. C11. */
#ifndef MULCIBER_C_BATCH_TRANSLATOR_H
#define MULCIBER_C_BATCH_TRANSLATOR_H

#include "mulciber/c/translator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberBatchTranslator MulciberBatchTranslator; /* a translator that texts share */

typedef struct MulciberBatchTranslatorInfo {
  uint32_t size;
  uint32_t slots; /* texts of a search that run at once; 0: 16 */
} MulciberBatchTranslatorInfo;

/* The translator remains usable between steps, on the same thread, and may be destroyed before. A
 * translation depends on its request and on `slots` alone, bit for bit. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_create_batch_translator(
    MulciberContext* context, MulciberTranslator* translator,
    const MulciberBatchTranslatorInfo* info, MulciberBatchTranslator** batch);

/* Drops the requests that have not ended, without their callbacks. */
MULCIBER_API void mulciber_destroy_batch_translator(MulciberBatchTranslator* batch);

typedef struct MulciberTranslationRequest {
  uint32_t size;
  const char* text;                  /* NULL where there are MulciberTranslateInfo::source_ids */
  const MulciberTranslateInfo* info; /* may be NULL */
  /* mulciber_step_translations() calls one of them once for every request that was accepted, with
   * its number; either may be NULL. They may submit and cancel requests, and must not destroy the
   * batch. What they are given is valid during the call. */
  void (*on_end)(void* user, uint64_t number, const MulciberTranslation* translation);
  /* Called when the logits of this text were not finite (MULCIBER_ERROR_MODEL), or when its search
   * does not fit the device's memory (MULCIBER_ERROR_OUT_OF_MEMORY). */
  void (*on_error)(void* user, uint64_t number, MulciberStatus status, const char* message);
  void* user;
} MulciberTranslationRequest;

/* Queues a request, whose structures and texts are not read afterwards. number: names it from now
 * on; may be NULL. */
MULCIBER_API MulciberStatus mulciber_submit_translation(MulciberContext* context,
                                                        MulciberBatchTranslator* batch,
                                                        const MulciberTranslationRequest* request,
                                                        uint64_t* number);

/* Ends a request at the next step: its translation is not complete. Does nothing for a request that
 * has ended. */
MULCIBER_API void mulciber_cancel_translation(MulciberBatchTranslator* batch, uint64_t number);

/* Admits waiting requests, computes a step of every search, and waits for it. busy: false when
 * there was nothing to do. */
MULCIBER_API MulciberStatus mulciber_step_translations(MulciberContext* context,
                                                       MulciberBatchTranslator* batch,
                                                       MulciberBool* busy);

/* Requests in a slot and requests that wait for one, and counts and times since the batch was
 * created, see BatchTranslatorStatistics in mulciber/batch_translator.h. */
typedef struct MulciberBatchTranslatorStatistics {
  uint32_t size;
  uint32_t running, waiting;
  uint64_t requests, ended, cancelled, source_tokens, target_tokens, steps, sequence_steps;
  uint64_t row_steps, needed_row_steps, refills;
  double encode_seconds, decode_seconds;
} MulciberBatchTranslatorStatistics;

MULCIBER_API MulciberStatus
mulciber_batch_translator_statistics(MulciberContext* context, const MulciberBatchTranslator* batch,
                                     MulciberBatchTranslatorStatistics* statistics);

#ifdef __cplusplus
}
#endif

#endif
