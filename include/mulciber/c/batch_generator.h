/* Mulciber for C: continuous batching. Many sequences share one language model, and each joins and
 * leaves the batch between two steps of the others. mulciber/batch_generator.h has the rules. C11.
 */
#ifndef MULCIBER_C_BATCH_GENERATOR_H
#define MULCIBER_C_BATCH_GENERATOR_H

#include "mulciber/c/completion.h"
#include "mulciber/c/prompt.h"
#include "mulciber/c/scores.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberBatchGenerator MulciberBatchGenerator; /* a model that sequences share */

/* The options of BatchGeneratorOptions; 0 chooses their defaults. */
typedef struct MulciberBatchInfo {
  uint32_t size;
  uint32_t prompt_tokens; /* most prompt tokens of one step (chunked prefill) */
  uint64_t cache_tokens;  /* capacity of the key-value cache, of all sequences together */
  /* Draft model with an identical vocabulary, for speculative decoding; NULL: none. */
  const MulciberModel* draft;
  uint32_t draft_rows; /* most rows of a step that verify draft tokens */
  uint32_t steps_per_submission;
} MulciberBatchInfo;

/* load: `sequences` is the number of batch slots; a request waits until one is free. load, info:
 * may be NULL. The models may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_batch_generator(
    MulciberContext* context, MulciberDevice* device, const MulciberModel* model,
    const MulciberLoadInfo* load, const MulciberBatchInfo* info, MulciberBatchGenerator** batch);

/* Destroying it ends all requests without a call. Not from a callback. */
MULCIBER_API void mulciber_destroy_batch_generator(MulciberBatchGenerator* batch);

/* ---- Requests ---- */

/* Options of a request beside those of MulciberGenerateInfo, and its last calls. */
typedef struct MulciberBatchRequest {
  uint32_t size;
  MulciberBool reuse_completions; /* faster, but the completion may depend on others in rounding */
  MulciberBool no_draft;          /* draft nothing by MulciberBatchInfo::draft */
  /* The last call for a request, unless on_error is. completion: valid during the call. May be
   * NULL. */
  void (*on_end)(void* user, const MulciberCompletion* completion);
  /* Called instead where logits were not finite, or a grammar allows none of the model's tokens.
   * May be NULL. */
  void (*on_error)(void* user, MulciberStatus status, const char* message);
  void* user; /* for these two; the others get MulciberGenerateInfo::user */
} MulciberBatchRequest;

/* Queues a request, which joins the batch at a later step, in the order of submission. prompt: NULL
 * where there are MulciberGenerateInfo::prompt_ids. info, request: may be NULL. number: for
 * mulciber_cancel_generation(); may be NULL. Callbacks come from mulciber_step_generations(); they
 * may submit and cancel requests, and must not throw. */
MULCIBER_API MulciberStatus mulciber_submit_generation(
    MulciberContext* context, MulciberBatchGenerator* batch, const char* prompt,
    const MulciberGenerateInfo* info, const MulciberBatchRequest* request, uint64_t* number);

/* Ends a request at the next step, with MULCIBER_COMPLETION_CANCELLED. Does nothing for one that
 * has ended. */
MULCIBER_API MulciberStatus mulciber_cancel_generation(MulciberContext* context,
                                                       MulciberBatchGenerator* batch,
                                                       uint64_t number);

/* Computes a chunk of one prompt, and one decode step or several of all sequences whose prompts are
 * complete. worked: 0 when there was nothing to do. */
MULCIBER_API MulciberStatus mulciber_step_generations(MulciberContext* context,
                                                      MulciberBatchGenerator* batch,
                                                      MulciberBool* worked);

/* Counts and times since the generator was made. */
typedef struct MulciberBatchGeneratorStatistics {
  uint32_t size;
  uint32_t running; /* requests that have a slot now */
  uint32_t waiting; /* requests that wait for one */
  uint64_t requests, ended, cancelled;
  uint64_t prompt_tokens, reused_tokens, new_tokens;
  uint64_t images;      /* images, or tiles of images, that the vision tower encoded */
  uint64_t preemptions; /* because pages ran out */
  /* Key-value cache: number of pages, tokens of a page, and pages that running sequences hold. */
  uint64_t pages, page_tokens, pages_used;
  uint64_t steps;     /* decode steps */
  uint64_t row_steps; /* sum of the batch size over decode steps */
  uint64_t draft_tokens;
  uint64_t accepted_tokens; /* draft tokens that the model chose too */
  double load_seconds, image_seconds, prefill_seconds, decode_seconds, build_seconds;
  uint64_t weight_bytes, predicted_device_bytes, peak_device_bytes;
} MulciberBatchGeneratorStatistics;

MULCIBER_API MulciberStatus mulciber_batch_statistics(MulciberContext* context,
                                                      const MulciberBatchGenerator* batch,
                                                      MulciberBatchGeneratorStatistics* statistics);

/* ---- What a MulciberGenerator has too ---- */

MULCIBER_API MulciberStatus mulciber_batch_describe(MulciberContext* context,
                                                    MulciberBatchGenerator* batch,
                                                    MulciberGeneratorReport* report);
MULCIBER_API MulciberStatus mulciber_batch_trim(MulciberContext* context,
                                                MulciberBatchGenerator* batch, uint64_t* freed);
MULCIBER_API MulciberStatus mulciber_batch_chat_prompt(
    MulciberContext* context, const MulciberBatchGenerator* batch, uint32_t count,
    const MulciberChatMessage* messages, MulciberResult** result, const char** prompt);
MULCIBER_API MulciberStatus mulciber_batch_tokenize(MulciberContext* context,
                                                    const MulciberBatchGenerator* batch,
                                                    const char* prompt,
                                                    const MulciberGenerateInfo* info,
                                                    MulciberResult** result, uint32_t* count,
                                                    const uint32_t** ids);
MULCIBER_API MulciberStatus mulciber_batch_detokenize(MulciberContext* context,
                                                      const MulciberBatchGenerator* batch,
                                                      uint32_t count, const uint32_t* ids,
                                                      MulciberResult** result, const char** text);
MULCIBER_API MulciberStatus mulciber_batch_token_text(MulciberContext* context,
                                                      const MulciberBatchGenerator* batch,
                                                      uint32_t id, MulciberResult** result,
                                                      const char** text);
MULCIBER_API MulciberStatus mulciber_batch_score(
    MulciberContext* context, MulciberBatchGenerator* batch, uint32_t count,
    const MulciberScoreInput* inputs, const MulciberScoreInfo* info, MulciberResult** result,
    const MulciberTextScore** scores, MulciberScoreStatistics* statistics);

/* ---- Attention maps ---- */

typedef struct MulciberBatchAttentionInfo {
  uint32_t size;
  MulciberBool one_layer; /* maps of `layer` alone; otherwise of all layers */
  uint32_t layer;
  MulciberBool mean;        /* average the heads of a layer, which then counts as one head */
  MulciberBool no_adapters; /* as in MulciberGenerateInfo */
  uint32_t adapter_count;
  const MulciberAdapter* adapters;
  MulciberCancel* cancel; /* NULL: none */
  /* Called between slices of about 20 ms, and may step the batch; may be NULL. */
  void (*between)(void* user);
  void* user;
} MulciberBatchAttentionInfo;

/* Gives attention maps of a text, which change no running sequence; NULL where it was cancelled.
 * info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_batch_attention(MulciberContext* context,
                                                     MulciberBatchGenerator* batch, uint32_t count,
                                                     const uint32_t* ids,
                                                     const MulciberBatchAttentionInfo* info,
                                                     MulciberResult** result,
                                                     const MulciberTokenAttention** attention);

#ifdef __cplusplus
}
#endif

#endif
