/* Mulciber for C: pipelines that are compiled a few at a time, before tasks need them. C11. */
#ifndef MULCIBER_C_WARMUP_H
#define MULCIBER_C_WARMUP_H

#include "mulciber/c/text_encoder.h"
#include "mulciber/c/translator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberWarmup MulciberWarmup; /* compiles pipelines */

/* Lists the pipelines of tasks that translate texts of at most source_tokens tokens; 0: the model's
 * maximum. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_warm_translator(MulciberContext* context,
                                                     const MulciberTranslator* translator,
                                                     const MulciberTranslateInfo* info,
                                                     uint32_t source_tokens,
                                                     MulciberWarmup** warmup);
MULCIBER_API MulciberStatus mulciber_warm_generator(MulciberContext* context,
                                                    const MulciberGenerator* generator,
                                                    MulciberWarmup** warmup);

/* Lists the pipelines of tasks that embed texts of at most `tokens` tokens. */
MULCIBER_API MulciberStatus mulciber_warm_text_encoder(MulciberContext* context,
                                                       const MulciberTextEncoder* encoder,
                                                       const MulciberEmbedInfo* info,
                                                       uint32_t tokens, MulciberWarmup** warmup);

/* Lists the pipelines of attention tasks with these rooms, for the translator or the generator; the
 * other one is NULL. */
MULCIBER_API MulciberStatus mulciber_warm_attention(MulciberContext* context,
                                                    const MulciberTranslator* translator,
                                                    const MulciberGenerator* generator,
                                                    uint32_t source_room, uint32_t room,
                                                    MulciberWarmup** warmup);

/* Compiles up to `count` pipelines, on any thread. left: number that remain; may be NULL. */
MULCIBER_API MulciberStatus mulciber_prewarm(MulciberContext* context, MulciberWarmup* warmup,
                                             uint32_t count, uint32_t* left);
MULCIBER_API void mulciber_destroy_warmup(MulciberWarmup* warmup);

#ifdef __cplusplus
}
#endif

#endif
