/* Mulciber for C: partial results of running tasks, attention maps of growing texts, embeddings in
 * slices, and embeddings, logits and hidden states that stay on the device. The rules are those of
 * mulciber/embedding.h and of mulciber_c.h. C11. */
#ifndef MULCIBER_MULCIBER_C_TASKS_H
#define MULCIBER_MULCIBER_C_TASKS_H

#include "mulciber/mulciber_c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Requirements and granted options ---- */

/* Does what mulciber_requirements() does, for a model with these options. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_requirements_with(
    MulciberContext* context, const MulciberPhysicalDevice* physical_device,
    const MulciberModel* model, const MulciberLoadInfo* info, MulciberRequirements* requirements);

typedef enum MulciberQueuePriority {
  MULCIBER_QUEUE_PRIORITY_DEFAULT = 0,
  MULCIBER_QUEUE_PRIORITY_LOW = 1,
  MULCIBER_QUEUE_PRIORITY_HIGH = 2,
  MULCIBER_QUEUE_PRIORITY_REALTIME = 3,
  MULCIBER_QUEUE_PRIORITY_MAX = 0x7fffffff
} MulciberQueuePriority;

typedef struct MulciberDeviceReport {
  uint32_t size;
  VkBool32 software;
  const char* name;
  const char* driver;
  uint64_t memory_bytes;                /* device-local, usable by the process now */
  MulciberQueuePriority queue_priority; /* granted; unknown for an adopted device */
  float occupancy_priority;             /* granted; 0.5 if the driver has none */
} MulciberDeviceReport;

/* The returned pointers are valid until the next call with this context. */
MULCIBER_API MulciberStatus mulciber_describe_device(MulciberContext* context,
                                                     const MulciberDevice* device,
                                                     MulciberDeviceReport* report);
/* Frees device memory that is kept for later texts, see Translator::trim(). */
MULCIBER_API MulciberStatus mulciber_trim(MulciberContext* context, MulciberTranslator* translator);

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

/* ---- Partial results ---- */

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

typedef struct MulciberBeam {
  const char* text;
  float score;
  VkBool32 finished; /* it has ended */
  uint32_t id_count;
  const uint32_t* ids;
} MulciberBeam;

/* Gives all hypotheses of a translation: the finished ones, then the others, both best first.
 * */
MULCIBER_API MulciberStatus mulciber_beams(MulciberContext* context, MulciberTask* task,
                                           uint32_t* count, const MulciberBeam** beams);

/* ---- Attention maps of growing texts ---- */

/* text: a translation of the translator or an answer of the generator, finished or running, which
 * may be destroyed afterwards; the other of translator and generator is NULL. source_room, room:
 * tokens of the longest texts that the task is restarted with; 0: as many as this one has.
 * source_room: for translations only. */
MULCIBER_API MulciberStatus mulciber_begin_attention_of(MulciberContext* context,
                                                        MulciberTranslator* translator,
                                                        MulciberGenerator* generator,
                                                        MulciberTask* text, uint32_t source_room,
                                                        uint32_t room, MulciberTask** task);
/* Starts the task again for another text of that model, for instance the same one some tokens
 * later. The task must be done; neither allocates device memory nor compiles. */
MULCIBER_API MulciberStatus mulciber_restart_attention(MulciberContext* context, MulciberTask* task,
                                                       MulciberTask* text);
/* Layers and heads of a kind of map; 0: the model has no such maps, or the task is not an attention
 * task. */
MULCIBER_API uint32_t mulciber_attention_layers(const MulciberTask* task,
                                                MulciberAttentionKind kind);
MULCIBER_API uint32_t mulciber_attention_heads(const MulciberTask* task,
                                               MulciberAttentionKind kind);

/* ---- Embeddings in slices ---- */

/* info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_begin_embedding(MulciberContext* context,
                                                     MulciberTextEncoder* encoder, const char* text,
                                                     const MulciberEmbedInfo* info,
                                                     MulciberTask** task);
/* Takes token embeddings instead of a text: rows of mulciber_embedding_width() floats, in a buffer
 * made with VK_BUFFER_USAGE_TRANSFER_SRC_BIT, which the first slice copies. */
MULCIBER_API MulciberStatus mulciber_begin_embedding_of_rows(
    MulciberContext* context, MulciberTextEncoder* encoder, const MulciberHostBuffer* rows,
    uint32_t tokens, const MulciberEmbedInfo* info, MulciberTask** task);
MULCIBER_API uint32_t mulciber_embedding_width(const MulciberTextEncoder* encoder);
/* Tokens of the text of such a task; 0 for other tasks. */
MULCIBER_API uint32_t mulciber_embedding_tokens(const MulciberTask* task);
/* Record a copy of the embedding, or of the hidden states, after the last slice: for a text's task
 * mulciber_vector_width() floats, or as many for each token; for an image's task
 * (mulciber_c_images.h) the sizes that mulciber_describe_image() gives. */
MULCIBER_API MulciberStatus mulciber_record_vector(MulciberContext* context, MulciberTask* task,
                                                   VkCommandBuffer commands,
                                                   const MulciberHostBuffer* buffer);
MULCIBER_API MulciberStatus mulciber_record_states(MulciberContext* context, MulciberTask* task,
                                                   VkCommandBuffer commands,
                                                   const MulciberHostBuffer* buffer);
/* Writes the floats of the embedding. The task must be done, and not cancelled. */
MULCIBER_API MulciberStatus mulciber_vector(MulciberContext* context, MulciberTask* task,
                                            float* vector);

/* ---- Grammars ---- */

typedef enum MulciberGrammarKind {
  MULCIBER_GRAMMAR_JSON_SCHEMA = 0,
  MULCIBER_GRAMMAR_JSON_OBJECT = 1, /* any object; text: NULL */
  MULCIBER_GRAMMAR_REGEX = 2,       /* matched by the whole answer */
  MULCIBER_GRAMMAR_GBNF = 3,        /* llama.cpp's notation of grammars */
  MULCIBER_GRAMMAR_MAX = 0x7fffffff
} MulciberGrammarKind;

/* Makes a grammar for MulciberGenerateInfo::grammar of any number of answers; mulciber/grammar.h
 * lists what is supported. It may be destroyed once the answers have begun. */
MULCIBER_API MulciberStatus mulciber_make_grammar(MulciberContext* context,
                                                  MulciberGrammarKind kind, const char* text,
                                                  MulciberGrammar** grammar);
MULCIBER_API void mulciber_destroy_grammar(MulciberGrammar* grammar);

/* ---- Prompts with embeddings, and outputs on the device ---- */

typedef struct MulciberPromptPart {
  uint32_t size;
  uint32_t tokens;  /* 0: the part is a text */
  const char* text; /* NULL where there are tokens */
  /* Otherwise `tokens` rows of mulciber_generator_width() floats in place of a text. */
  const MulciberHostBuffer* embeddings;
} MulciberPromptPart;

/* Ring buffers of rows, made with VK_BUFFER_USAGE_TRANSFER_DST_BIT; NULL: not written. */
typedef struct MulciberGenerationOutputs {
  uint32_t size;
  const MulciberHostBuffer* logits; /* mulciber_vocabulary() floats for each token of the answer */
  const MulciberHostBuffer* states; /* mulciber_generator_width() floats for each token */
} MulciberGenerationOutputs;

/* All parts have the size of the first. info, outputs: may be NULL. */
MULCIBER_API MulciberStatus
mulciber_begin_generation_of(MulciberContext* context, MulciberGenerator* generator, uint32_t count,
                             const MulciberPromptPart* parts, const MulciberGenerateInfo* info,
                             const MulciberGenerationOutputs* outputs, MulciberTask** task);
MULCIBER_API uint32_t mulciber_vocabulary(const MulciberGenerator* generator);
MULCIBER_API uint32_t mulciber_generator_width(const MulciberGenerator* generator);

#ifdef __cplusplus
}
#endif

#endif
