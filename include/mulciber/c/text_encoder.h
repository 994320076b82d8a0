/* Mulciber for C: text embeddings. C11. */
#ifndef MULCIBER_C_TEXT_ENCODER_H
#define MULCIBER_C_TEXT_ENCODER_H

#include "mulciber/c/cancel.h"
#include "mulciber/c/encoder_statistics.h"
#include "mulciber/c/id_sequence.h"
#include "mulciber/c/model.h"
#include "mulciber/c/result.h"
#include "mulciber/c/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* info: may be NULL. The model may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_text_encoder(MulciberContext* context,
                                                       MulciberDevice* device,
                                                       const MulciberModel* model,
                                                       const MulciberLoadInfo* info,
                                                       MulciberTextEncoder** encoder);
MULCIBER_API void mulciber_destroy_text_encoder(MulciberTextEncoder* encoder);

/* Floats in an embedding. */
MULCIBER_API uint32_t mulciber_vector_width(const MulciberTextEncoder* encoder);

/* Floats in a token embedding. */
MULCIBER_API uint32_t mulciber_embedding_width(const MulciberTextEncoder* encoder);

typedef enum MulciberPooling {
  MULCIBER_POOLING_DEFAULT = 0, /* from the model's files */
  MULCIBER_POOLING_MEAN = 1,    /* the mean of the hidden states of all tokens */
  MULCIBER_POOLING_FIRST = 2,   /* the hidden state of the first token */
  MULCIBER_POOLING_POOLER = 3,  /* the model's own pooler, applied to the first token's state */
  MULCIBER_POOLING_LAST = 4,    /* the hidden state of the last token */
  MULCIBER_POOLING_MAXIMUM = 5, /* the maximum of each column */
  MULCIBER_POOLING_MEAN_SQRT_LENGTH = 6, /* the sum over the square root of the number of tokens */
  MULCIBER_POOLING_WEIGHTED_MEAN = 7,    /* the mean, in which token i (from 1) has the weight i */
  MULCIBER_POOLING_MAX = 0x7fffffff
} MulciberPooling;

/* A prefix for texts of a purpose. */
typedef struct MulciberPrompt {
  uint32_t size;
  const char* name;
  const char* text;
} MulciberPrompt;

typedef struct MulciberTextEncoderReport {
  uint32_t size;
  uint32_t vector_width;    /* floats in an embedding */
  uint32_t embedding_width; /* floats in a token embedding */
  uint32_t state_width;     /* floats in a token's hidden state */
  uint32_t max_tokens;      /* most tokens of a text */
  MulciberPooling pooling;  /* of the model's files, as the next fields are */
  MulciberBool normalize;
  uint32_t prompt_count;
  const MulciberPrompt* prompts; /* stepped through by MulciberPrompt::size */
  const char* default_prompt;    /* its name; NULL: texts have no prefix */
} MulciberTextEncoderReport;

/* The returned pointers are valid until the next such call with the encoder, or until it is
 * destroyed. */
MULCIBER_API MulciberStatus mulciber_describe_text_encoder(MulciberContext* context,
                                                           const MulciberTextEncoder* encoder,
                                                           MulciberTextEncoderReport* report);

/* Counts those of the calls below that compute at once. */
MULCIBER_API MulciberStatus mulciber_text_encoder_statistics(MulciberContext* context,
                                                             const MulciberTextEncoder* encoder,
                                                             MulciberEncoderStatistics* statistics);

/* Frees device memory that is kept for later texts, see Translator::trim(). bytes: those that went
 * back to the driver or the application's allocator; may be NULL. */
MULCIBER_API MulciberStatus mulciber_trim_text_encoder(MulciberContext* context,
                                                       MulciberTextEncoder* encoder,
                                                       uint64_t* bytes);

/* ---- Options ---- */

typedef struct MulciberEmbedInfo {
  uint32_t size;
  MulciberBool refuse_long; /* texts with too many tokens are an error instead of truncated */
  const char* prompt;       /* prefix of every text; NULL: from the model's files */
  /* For tasks, instead of a text: `tokens` token embeddings of mulciber_embedding_width() floats,
   * in a buffer made with VK_BUFFER_USAGE_TRANSFER_SRC_BIT, which the first slice copies. */
  const MulciberApplicationBuffer* embeddings;
  uint32_t tokens;
  MulciberPooling pooling;
  MulciberBool set_normalize; /* use normalize; otherwise the model's files decide */
  MulciberBool normalize;     /* scale vectors to length 1 */
  const char* prompt_name;    /* name of one of the model's prompts, instead of prompt; or NULL */

  /* The fields below are of calls that compute at once; tasks refuse them. */
  uint32_t dimensions; /* first values of a vector to give (Matryoshka), see EmbedOptions; 0: all */
  uint32_t batch_tokens; /* most tokens of a batch, padding included; 0: 2048 */
  uint32_t batch_texts;  /* most texts of a batch; 0: 64 */
  /* Texts as ids, special tokens included, in place of texts, which are NULL then: as many as the
   * call has texts. Prompts are not used. */
  const MulciberIdSequence* ids;
  /* Called after every batch with the numbers of finished and of all texts; may be NULL. */
  void (*on_progress)(void* user, uint64_t done, uint64_t total);
  void* user;
  MulciberCancel* cancel; /* NULL: none */
} MulciberEmbedInfo;

/* ---- At once ---- */

/* A text's embedding, of one row, or its hidden states, of a row for each token. */
typedef struct MulciberTextVector {
  uint32_t size;
  MulciberBool complete;  /* false: cancelled before this text was done, and there are no rows */
  MulciberBool truncated; /* the text has more tokens */
  uint32_t tokens;        /* tokens that were read, special tokens included */
  uint32_t rows, columns;
  const float* values; /* (rows, columns) row-major */
} MulciberTextVector;

/* Computes embeddings of `count` texts in batches; submits and waits, unlike tasks. vectors: as
 * many as texts, in their order, stepped through by MulciberTextVector::size. info: may be NULL,
 * without embeddings. */
MULCIBER_API MulciberStatus mulciber_embed_texts(MulciberContext* context,
                                                 MulciberTextEncoder* encoder, uint32_t count,
                                                 const char* const* texts,
                                                 const MulciberEmbedInfo* info,
                                                 MulciberResult** result,
                                                 const MulciberTextVector** vectors);

/* Writes the embeddings one after another: mulciber_vector_width() floats each, or
 * MulciberEmbedInfo::dimensions. It cannot be cancelled, because nothing would say which texts are
 * complete. info: may be NULL, without embeddings. */
MULCIBER_API MulciberStatus mulciber_embed(MulciberContext* context, MulciberTextEncoder* encoder,
                                           uint32_t count, const char* const* texts,
                                           const MulciberEmbedInfo* info, float* vectors);

/* Gives the hidden states of the texts' tokens after the last layer, which embeddings are pooled
 * from: rows of MulciberTextEncoderReport::state_width floats. Pooling, normalize, dimensions and
 * ids are refused. */
MULCIBER_API MulciberStatus mulciber_text_states(MulciberContext* context,
                                                 MulciberTextEncoder* encoder, uint32_t count,
                                                 const char* const* texts,
                                                 const MulciberEmbedInfo* info,
                                                 MulciberResult** result,
                                                 const MulciberTextVector** states);

/* Counts the tokens of each text, with its prompt and special tokens, before anything is truncated.
 * info: its prompt; may be NULL. */
MULCIBER_API MulciberStatus mulciber_count_embedding_tokens(
    MulciberContext* context, const MulciberTextEncoder* encoder, uint32_t count,
    const char* const* texts, const MulciberEmbedInfo* info, uint32_t* counts);

/* ---- In slices ---- */

/* text: NULL where there are MulciberEmbedInfo::embeddings. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_begin_embedding(MulciberContext* context,
                                                     MulciberTextEncoder* encoder, const char* text,
                                                     const MulciberEmbedInfo* info,
                                                     MulciberTask** task);

/* Tokens of the text of such a task; 0 for other tasks. */
MULCIBER_API uint32_t mulciber_embedding_tokens(const MulciberTask* task);

/* ---- Deprecated names of version 0.1 ---- */

MULCIBER_DEPRECATED("use mulciber_begin_embedding and MulciberEmbedInfo::embeddings")
MULCIBER_API MulciberStatus mulciber_begin_embedding_of_rows(
    MulciberContext* context, MulciberTextEncoder* encoder, const MulciberApplicationBuffer* rows,
    uint32_t tokens, const MulciberEmbedInfo* info, MulciberTask** task);

#ifdef __cplusplus
}
#endif

#endif
