/* Mulciber for C: text generation. C11. */
#ifndef MULCIBER_C_GENERATOR_H
#define MULCIBER_C_GENERATOR_H

#include "mulciber/c/cancel.h"
#include "mulciber/c/grammar.h"
#include "mulciber/c/model.h"
#include "mulciber/c/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberPreparedImage MulciberPreparedImage; /* mulciber/c/prompt.h makes it */

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

/* Frees device memory that is kept for later calls, see TextGenerator::trim(). freed: bytes that
 * went back; may be NULL. */
MULCIBER_API MulciberStatus mulciber_trim_generator(MulciberContext* context,
                                                    MulciberGenerator* generator, uint64_t* freed);

/* Bytes of device memory. */
typedef struct MulciberMemoryPrediction {
  uint32_t size;
  uint64_t weight_bytes;
  uint64_t context_bytes;   /* key-value cache and activations */
  uint64_t key_value_bytes; /* key-value cache alone */
} MulciberMemoryPrediction;

/* Predicts the memory of mulciber_load_generator() with these arguments. */
MULCIBER_API MulciberStatus mulciber_predict_generator(MulciberContext* context,
                                                       MulciberDevice* device,
                                                       const MulciberModel* model,
                                                       const MulciberLoadInfo* info,
                                                       MulciberMemoryPrediction* prediction);

/* Settings as mulciber/sampling.h explains them. */
typedef struct MulciberSampling {
  uint32_t size;
  float temperature; /* 0: greedy decoding */
  uint32_t top_k;    /* 0: all */
  float top_p;       /* from 1 on: all */
  float min_p;
  float typical_p;          /* from 1 on: all */
  float repetition_penalty; /* 1: none */
  float presence_penalty, frequency_penalty;
  uint32_t penalty_window; /* latest tokens that penalties cover */
  uint64_t seed;
} MulciberSampling;

typedef struct MulciberGeneratorReport {
  uint32_t size;
  uint32_t context;       /* most tokens of prompt and completion together */
  const char* family;     /* model_type of config.json, or the architecture of a GGUF file */
  uint32_t sequences;     /* MulciberLoadInfo::sequences */
  uint32_t vocabulary;    /* number of logits of a step */
  uint32_t width;         /* floats in a token's hidden state, and in its embedding */
  uint32_t layers, heads; /* attention heads of a layer; 0: the layers keep a state */
  MulciberKeyValueStorage key_values;
  MulciberBool chat_template; /* the files have one, for mulciber_chat_prompt() */
  uint32_t end_count;
  const uint32_t* end_ids; /* ids that end a text */
  uint32_t adapter_count;
  const char* const* adapters; /* names that requests may select */
  /* Settings where MulciberGenerateInfo::sample is not set. */
  const MulciberSampling* default_sampling;
} MulciberGeneratorReport;

/* The returned pointers are valid until the next such call with this generator. */
MULCIBER_API MulciberStatus mulciber_describe_generator(MulciberContext* context,
                                                        MulciberGenerator* generator,
                                                        MulciberGeneratorReport* report);

/* ---- Options of completions ---- */

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

/* A token of a completion, valid during the call that has it. The library sets its size. */
typedef struct MulciberToken {
  uint32_t size;
  uint32_t id;
  /* Text that it makes final: whole UTF-8 characters, not NUL-terminated. None while the text may
   * begin one of MulciberGenerateInfo::stops. */
  const char* piece;
  size_t piece_bytes;
  float log_probability;    /* where it was asked for; otherwise 0 */
  uint32_t likeliest_count; /* most probable tokens, the most probable first */
  const uint32_t* likeliest_ids;
  const float* likeliest_log_probabilities;
} MulciberToken;

/* mulciber/text_generator.h explains the options. Each function refuses by name those fields that
 * have no meaning for it. */
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
  const MulciberGenerationOutputs* outputs; /* for tasks; NULL: none */

  MulciberBool no_special;      /* leave out the model's first special tokens: <s>, <bos> ... */
  MulciberBool literal_special; /* read special tokens that are spelled out in a prompt as text */
  /* The prompt's token ids instead of a text. With images they include the images' tokens, as those
   * of mulciber_tokenize() do. */
  const uint32_t* prompt_ids;
  uint32_t prompt_id_count;
  uint32_t image_count;
  /* Images of the prompt: one for each placeholder, in their order, or else before the prompt. Not
   * for tasks, nor for mulciber_generate_all(). */
  const MulciberPreparedImage* const* images;

  /* Further settings of sampling, read where `sample` is set. */
  float typical_p;          /* 0 and from 1 on: all */
  float repetition_penalty; /* 0 and 1: none */
  float presence_penalty, frequency_penalty;
  uint32_t penalty_window; /* latest tokens that penalties cover; 0: 64 */
  /* Random number stream: give each completion drawn with one seed its own. Text i of
   * mulciber_generate_all() draws from stream + i. */
  uint32_t stream;

  const char* const* stops; /* texts that end the completion and are not part of it */
  uint32_t stop_count;
  uint32_t bias_count;            /* at most 300 */
  const uint32_t* bias_ids;       /* biases are added to the logits of these ids, after penalties */
  const float* biases;            /* -infinity forbids an id */
  MulciberBool log_probabilities; /* compute them for each token; not for tasks */
  uint32_t likeliest; /* also for so many most probable tokens, at most 20; sets the field above */
  MulciberBool attention; /* also compute attention maps; mulciber_generate() and _all() alone */
  /* Context shift, for mulciber_generate() alone: drop the oldest tokens behind the first `keep`
   * where the context is full. */
  MulciberBool shift;
  uint32_t keep;
  /* Speculative decoding: tokens by which prompt lookup finds draft tokens, 0: off; a draft model,
   * which must not be used meanwhile; draft tokens of a step, 0: as many as suit. The draft model
   * is for mulciber_generate() alone, the others for batch generators too. */
  uint32_t prompt_lookup;
  uint32_t draft_tokens;
  MulciberGenerator* draft;
  /* Decode steps in one submission, up to 32; 0: chosen for the device. Not for tasks, nor for
   * batch generators, which have an option of their own. */
  uint32_t steps_per_submission;
  MulciberBool no_adapters;        /* apply no adapter */
  const MulciberAdapter* adapters; /* apply these alone, by name; all have the size of the first */
  uint32_t adapter_count;          /* 0: those of mulciber_use_adapters() */
  MulciberCancel* cancel; /* ends the completion early; NULL: none; not for batch generators */
  /* Called with the numbers of computed and of all tokens of the prompt; may be NULL. */
  void (*on_prompt)(void* user, uint32_t done, uint32_t total);
  void (*on_token)(void* user, const MulciberToken* token); /* before on_text; may be NULL */
} MulciberGenerateInfo;

/* ---- Tasks ---- */

/* prompt: NULL where the prompt is in MulciberGenerateInfo::parts or prompt_ids. info: may be
 * NULL. */
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
