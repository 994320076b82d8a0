/* Mulciber for C: text generation. C11. */
#ifndef MULCIBER_C_GENERATOR_H
#define MULCIBER_C_GENERATOR_H

#include "mulciber/c/grammar.h"
#include "mulciber/c/model.h"
#include "mulciber/c/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* info: may be NULL. The model may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_generator(MulciberContext* context,
                                                    MulciberDevice* device,
                                                    const MulciberModel* model,
                                                    const MulciberLoadInfo* info,
                                                    MulciberGenerator** generator);

/* Makes a second conversation that shares the generator's weights. tokens: its context, at most
 * that of the generator; 0: as many. Either may be destroyed first; one thread uses both. */
MULCIBER_API MulciberStatus mulciber_new_conversation(MulciberContext* context,
                                                      const MulciberGenerator* generator,
                                                      uint32_t tokens,
                                                      MulciberGenerator** conversation);
MULCIBER_API void mulciber_destroy_generator(MulciberGenerator* generator);
MULCIBER_API uint32_t mulciber_vocabulary(const MulciberGenerator* generator);
MULCIBER_API uint32_t mulciber_generator_width(const MulciberGenerator* generator);

/* ---- Tasks ---- */

typedef struct MulciberPromptPart {
  uint32_t size;
  uint32_t tokens;  /* 0: the part is a text */
  const char* text; /* NULL where there are tokens */
  /* Otherwise `tokens` rows of mulciber_generator_width() floats in place of a text. */
  const MulciberApplicationBuffer* embeddings;
} MulciberPromptPart;

/* Ring buffers of rows, made with VK_BUFFER_USAGE_TRANSFER_DST_BIT; NULL: not written. */
typedef struct MulciberGenerationOutputs {
  uint32_t size;
  /* mulciber_vocabulary() floats for each token of the answer. */
  const MulciberApplicationBuffer* logits;
  const MulciberApplicationBuffer* states; /* mulciber_generator_width() floats for each token */
} MulciberGenerationOutputs;

typedef struct MulciberGenerateInfo {
  uint32_t size;
  uint32_t max_new_tokens; /* 0: as many as the context has room for */
  MulciberBool sample;     /* use the fields below; otherwise the model's files decide */
  float temperature;       /* 0: greedy decoding */
  uint32_t top_k;          /* 0: all */
  float top_p;             /* 0 and from 1 on: all */
  float min_p;
  uint64_t seed;
  MulciberBool ignore_end; /* continue after the model's own end of text */
  /* Called with pieces of the answer, whole UTF-8 characters; may be NULL. */
  void (*on_text)(void* user, const char* text, size_t bytes);
  void* user;
  const MulciberGrammar* grammar; /* guided decoding; NULL: any text */
  /* A prompt in parts instead of a text; all have the size of the first. */
  const MulciberPromptPart* parts;
  uint32_t part_count;
  const MulciberGenerationOutputs* outputs; /* NULL: none */
} MulciberGenerateInfo;

/* prompt: NULL where the prompt is in MulciberGenerateInfo::parts. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_begin_generation(MulciberContext* context,
                                                      MulciberGenerator* generator,
                                                      const char* prompt,
                                                      const MulciberGenerateInfo* info,
                                                      MulciberTask** task);

/* ---- Snapshots ---- */

/* Save the tokens of a generator's last completion and its prompt, with their keys and values, and
 * load them into its cache. */
MULCIBER_API MulciberStatus mulciber_save_snapshot(MulciberContext* context,
                                                   MulciberGenerator* generator, const char* file);
MULCIBER_API MulciberStatus mulciber_load_snapshot(MulciberContext* context,
                                                   MulciberGenerator* generator, const char* file);

/* Take and restore such a snapshot in memory, for instance before a device is lost. bytes NULL:
 * sets *size. Otherwise writes at most *size bytes, and sets it to their number. */
MULCIBER_API MulciberStatus mulciber_take_snapshot(MulciberContext* context,
                                                   MulciberGenerator* generator, size_t* size,
                                                   void* bytes);
MULCIBER_API MulciberStatus mulciber_restore_snapshot(MulciberContext* context,
                                                      MulciberGenerator* generator,
                                                      const void* bytes, size_t size);

/* ---- Deprecated names of version 0.1 ---- */

MULCIBER_DEPRECATED("use mulciber_begin_generation and MulciberGenerateInfo::parts")
MULCIBER_API MulciberStatus
mulciber_begin_generation_of(MulciberContext* context, MulciberGenerator* generator, uint32_t count,
                             const MulciberPromptPart* parts, const MulciberGenerateInfo* info,
                             const MulciberGenerationOutputs* outputs, MulciberTask** task);

#ifdef __cplusplus
}
#endif

#endif
