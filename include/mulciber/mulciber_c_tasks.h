/* Mulciber for C: what tasks know while they are under way, maps that follow a text, vectors in
 * slices, and numbers that never pass the host. The rules are those of mulciber/embedding.h and of
 * mulciber_c.h. C11. */
#ifndef MULCIBER_MULCIBER_C_TASKS_H
#define MULCIBER_MULCIBER_C_TASKS_H

#include "mulciber/mulciber_c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What was asked for, and what was granted ---- */

/* As mulciber_requirements(), for a model with these options. info: may be NULL. */
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
  uint64_t memory_bytes;                /* device-local, that the process may use now */
  MulciberQueuePriority queue_priority; /* granted; of an adopted device its host knows */
  float occupancy_priority;             /* granted; 0.5 where the driver has none */
} MulciberDeviceReport;

/* What is pointed to lives until the next call with this context. */
MULCIBER_API MulciberStatus mulciber_describe_device(MulciberContext* context,
                                                     const MulciberDevice* device,
                                                     MulciberDeviceReport* report);
/* Gives back what is kept for texts to come. */
MULCIBER_API MulciberStatus mulciber_trim(MulciberContext* context, MulciberTranslator* translator);

/* The barriers at the borders of every slice: what of earlier work it waits for, and to what of
 * later work it shows what it wrote. */
typedef struct MulciberBorders {
  uint32_t size;
  VkPipelineStageFlags waits_for_stages;
  VkAccessFlags waits_for_accesses;
  VkPipelineStageFlags shown_to_stages;
  VkAccessFlags shown_to_accesses;
} MulciberBorders;
MULCIBER_API MulciberStatus mulciber_borders(MulciberContext* context, MulciberBorders* borders);

/* ---- Texts under way ---- */

/* What such functions point to lives until the next call with the task. */
typedef struct MulciberText {
  uint32_t size;
  VkBool32 complete; /* the task is done, and was not cancelled */
  const char* text;
  float score; /* of a translation, as it would be if it ended here */
  uint32_t id_count;
  const uint32_t* ids;
  const char* const* tokens; /* the same as a person sees them */
  uint32_t source_count;     /* of the text that is translated, or of the prompt */
  const uint32_t* source_ids;
  const char* const* source_tokens;
} MulciberText;

/* Of a translation the best hypothesis, of an answer what is known of it. */
MULCIBER_API MulciberStatus mulciber_so_far(MulciberContext* context, MulciberTask* task,
                                            MulciberText* text);
/* Steps of decoding that have ended: of an answer its tokens. */
MULCIBER_API uint32_t mulciber_steps(const MulciberTask* task);

typedef struct MulciberBeam {
  const char* text;
  float score;
  VkBool32 finished; /* nothing is added to it */
  uint32_t id_count;
  const uint32_t* ids;
} MulciberBeam;

/* All hypotheses of a translation: the finished ones, then those that go on, both best first. */
MULCIBER_API MulciberStatus mulciber_beams(MulciberContext* context, MulciberTask* task,
                                           uint32_t* count, const MulciberBeam** beams);

/* ---- Attention maps of texts that grow ---- */

/* text: a translation of this translator or an answer of this generator, whole or under way, which
 * may be destroyed afterwards; the other of the two is NULL. The rooms are tokens of the longest
 * texts that the task is restarted with; 0: as many as this one has. source_room: of translations
 * alone. */
MULCIBER_API MulciberStatus mulciber_begin_attention_of(MulciberContext* context,
                                                        MulciberTranslator* translator,
                                                        MulciberGenerator* generator,
                                                        MulciberTask* text, uint32_t source_room,
                                                        uint32_t room, MulciberTask** task);
/* The maps of another text of that model, such as the same one some tokens later. Of a task that is
 * done; neither allocates memory of the device's nor compiles. */
MULCIBER_API MulciberStatus mulciber_restart_attention(MulciberContext* context, MulciberTask* task,
                                                       MulciberTask* text);
/* 0: the model has none of that kind, or the task is none of attention. */
MULCIBER_API uint32_t mulciber_attention_layers(const MulciberTask* task,
                                                MulciberAttentionKind kind);
MULCIBER_API uint32_t mulciber_attention_heads(const MulciberTask* task,
                                               MulciberAttentionKind kind);

/* ---- Vectors in slices ---- */

/* info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_begin_embedding(MulciberContext* context,
                                                     MulciberTextEncoder* encoder, const char* text,
                                                     const MulciberEmbedInfo* info,
                                                     MulciberTask** task);
/* Of embeddings in place of a text: rows of mulciber_embedding_width() floats, in a buffer made
 * with VK_BUFFER_USAGE_TRANSFER_SRC_BIT, that the first slice copies. */
MULCIBER_API MulciberStatus mulciber_begin_embedding_of_rows(
    MulciberContext* context, MulciberTextEncoder* encoder, const MulciberHostBuffer* rows,
    uint32_t tokens, const MulciberEmbedInfo* info, MulciberTask** task);
MULCIBER_API uint32_t mulciber_embedding_width(const MulciberTextEncoder* encoder);
/* Of such a task's text; 0 of others. */
MULCIBER_API uint32_t mulciber_embedding_tokens(const MulciberTask* task);
/* Behind the last slice of a text's task: mulciber_vector_width() floats, or as many for each
 * token. Of a picture's task (mulciber_c_pictures.h): what mulciber_describe_picture() says. */
MULCIBER_API MulciberStatus mulciber_record_vector(MulciberContext* context, MulciberTask* task,
                                                   VkCommandBuffer commands,
                                                   const MulciberHostBuffer* buffer);
MULCIBER_API MulciberStatus mulciber_record_states(MulciberContext* context, MulciberTask* task,
                                                   VkCommandBuffer commands,
                                                   const MulciberHostBuffer* buffer);
/* Of a task that is done, and was not cancelled: the floats of a vector. */
MULCIBER_API MulciberStatus mulciber_vector(MulciberContext* context, MulciberTask* task,
                                            float* vector);

/* ---- What answers may be ---- */

typedef enum MulciberGrammarKind {
  MULCIBER_GRAMMAR_JSON_SCHEMA = 0,
  MULCIBER_GRAMMAR_JSON_OBJECT = 1, /* any; text: NULL */
  MULCIBER_GRAMMAR_REGEX = 2,       /* that the whole answer matches */
  MULCIBER_GRAMMAR_GBNF = 3,        /* llama.cpp's notation */
  MULCIBER_GRAMMAR_MAX = 0x7fffffff
} MulciberGrammarKind;

/* For MulciberGenerateInfo::grammar of any number of answers: mulciber/grammar.h says what is
 * understood. It may be destroyed once they are begun. */
MULCIBER_API MulciberStatus mulciber_make_grammar(MulciberContext* context,
                                                  MulciberGrammarKind kind, const char* text,
                                                  MulciberGrammar** grammar);
MULCIBER_API void mulciber_destroy_grammar(MulciberGrammar* grammar);

/* ---- Answers to more than texts, and what they leave ---- */

typedef struct MulciberPromptPart {
  uint32_t size;
  uint32_t tokens;  /* 0: the part is a text */
  const char* text; /* NULL where there are tokens */
  /* Otherwise so many rows of mulciber_generator_width() floats in place of a text. */
  const MulciberHostBuffer* embeddings;
} MulciberPromptPart;

/* Rings of rows in buffers made with VK_BUFFER_USAGE_TRANSFER_DST_BIT; NULL: not wanted. */
typedef struct MulciberGenerationOutputs {
  uint32_t size;
  const MulciberHostBuffer* logits; /* of answer's token i, mulciber_vocabulary() floats */
  const MulciberHostBuffer* states; /* of token i, mulciber_generator_width() floats */
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
