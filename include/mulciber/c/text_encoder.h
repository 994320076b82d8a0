/* Mulciber for C: text embeddings. C11. */
#ifndef MULCIBER_C_TEXT_ENCODER_H
#define MULCIBER_C_TEXT_ENCODER_H

#include "mulciber/c/model.h"
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

typedef struct MulciberEmbedInfo {
  uint32_t size;
  MulciberBool refuse_long; /* texts with too many tokens are an error instead of truncated */
  const char* prompt;       /* prefix of every text; NULL: from the model's files */
  /* For tasks, instead of a text: `tokens` token embeddings of mulciber_embedding_width() floats,
   * in a buffer made with VK_BUFFER_USAGE_TRANSFER_SRC_BIT, which the first slice copies. */
  const MulciberApplicationBuffer* embeddings;
  uint32_t tokens;
} MulciberEmbedInfo;

/* Computes embeddings of `count` texts, one after another. Pooling and normalization are those of
 * the model's files. Submits and waits, unlike tasks. info: may be NULL, without embeddings. */
MULCIBER_API MulciberStatus mulciber_embed(MulciberContext* context, MulciberTextEncoder* encoder,
                                           uint32_t count, const char* const* texts,
                                           const MulciberEmbedInfo* info, float* vectors);

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
