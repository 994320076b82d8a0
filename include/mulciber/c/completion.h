/* Mulciber for C: completions that are computed at once. C11. */
#ifndef MULCIBER_C_COMPLETION_H
#define MULCIBER_C_COMPLETION_H

#include "mulciber/c/generator.h"
#include "mulciber/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum MulciberCompletionEnd {
  MULCIBER_COMPLETION_END_OF_TEXT = 0,  /* the model's end-of-text token */
  MULCIBER_COMPLETION_STOP_TEXT = 1,    /* one of MulciberGenerateInfo::stops occurred */
  MULCIBER_COMPLETION_TOKEN_LIMIT = 2,  /* max_new_tokens is reached */
  MULCIBER_COMPLETION_CONTEXT_FULL = 3, /* prompt and completion fill the context */
  MULCIBER_COMPLETION_CANCELLED = 4,
  MULCIBER_COMPLETION_END_MAX = 0x7fffffff
} MulciberCompletionEnd;

/* Attention weights, after the softmax, of every layer and head. */
typedef struct MulciberTokenAttention {
  uint32_t size;
  uint32_t layers, heads, length;
  /* (layers, heads, length, length) row-major; row i: the weights of the query of token i. */
  const float* weights;
  const uint32_t* windows;   /* sliding window of each layer, in tokens; 0: all */
  const char* const* tokens; /* readable text of each token */
} MulciberTokenAttention;

typedef struct MulciberCompletion {
  uint32_t size;
  MulciberCompletionEnd end;
  const char* text;
  uint32_t id_count;
  uint32_t prompt_count;
  const uint32_t* ids;       /* the end-of-text token included */
  const char* const* tokens; /* readable text of each of ids */
  const uint32_t* prompt_ids;
  /* Where MulciberGenerateInfo::log_probabilities is set; otherwise NULL. Each of ids has one log
   * probability, and `likeliest` most probable tokens, the most probable first. */
  const float* log_probabilities;
  uint32_t likeliest;
  const uint32_t* likeliest_ids;            /* (id_count, likeliest) */
  const float* likeliest_log_probabilities; /* (id_count, likeliest) */
  const MulciberTokenAttention* attention;  /* NULL unless asked for */
  uint64_t left_out;      /* tokens that MulciberGenerateInfo::shift left out of the context */
  uint64_t reused_tokens; /* prompt tokens that were reused from a cached prefix */
  uint64_t draft_tokens;
  uint64_t accepted_tokens; /* draft tokens that the model chose too */
} MulciberCompletion;

/* Continues a prompt, submits and waits, unlike tasks. A prefix that is in the cache from an
 * earlier prompt or completion is reused, so a conversation may be passed from its start every
 * time. prompt: NULL where there are MulciberGenerateInfo::prompt_ids. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_generate(MulciberContext* context,
                                              MulciberGenerator* generator, const char* prompt,
                                              const MulciberGenerateInfo* info,
                                              MulciberResult** result,
                                              const MulciberCompletion** completion);

/* Continues `count` prompts, MulciberLoadInfo::sequences at a time. The list has a completion for
 * each, and is stepped through by their size. info: may be NULL; applies to all prompts. */
MULCIBER_API MulciberStatus mulciber_generate_all(MulciberContext* context,
                                                  MulciberGenerator* generator, uint32_t count,
                                                  const char* const* prompts,
                                                  const MulciberGenerateInfo* info,
                                                  MulciberResult** result,
                                                  const MulciberCompletion** completions);

/* Continues prompts of token ids in this way. ids: those of all prompts, one after another;
 * lengths: how many belong to each. */
MULCIBER_API MulciberStatus mulciber_generate_all_ids(MulciberContext* context,
                                                      MulciberGenerator* generator, uint32_t count,
                                                      const uint32_t* lengths, const uint32_t* ids,
                                                      const MulciberGenerateInfo* info,
                                                      MulciberResult** result,
                                                      const MulciberCompletion** completions);

/* Counts and times of the last of these calls, and of loading. */
typedef struct MulciberGeneratorStatistics {
  uint32_t size;
  uint32_t decode_steps; /* one of several texts counts once */
  uint64_t prompt_tokens;
  uint64_t reused_tokens; /* prompt tokens that were reused from a cached prefix */
  uint64_t new_tokens;
  uint64_t draft_tokens;
  uint64_t accepted_tokens; /* draft tokens that the model chose too */
  uint64_t images;          /* images, or tiles of images, that the vision tower encoded */
  double load_seconds;      /* loading: files to device */
  double image_seconds;
  double build_seconds; /* building and recording programs */
  double prefill_seconds;
  double decode_seconds;
  double attention_seconds;
  double first_token_seconds; /* since the call */
  uint64_t weight_bytes;      /* on the device */
  /* Weights, key-value cache and activations, predicted before they were allocated. */
  uint64_t predicted_device_bytes;
  uint64_t peak_device_bytes; /* most bytes allocated at once */
  uint64_t step_bytes;        /* bytes that a decode step must read and write with a full context */
} MulciberGeneratorStatistics;

MULCIBER_API MulciberStatus mulciber_generator_statistics(MulciberContext* context,
                                                          const MulciberGenerator* generator,
                                                          MulciberGeneratorStatistics* statistics);

#ifdef __cplusplus
}
#endif

#endif
