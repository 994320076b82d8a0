/* Mulciber for C: translation. C11. */
#ifndef MULCIBER_C_TRANSLATOR_H
#define MULCIBER_C_TRANSLATOR_H

#include "mulciber/c/model.h"
#include "mulciber/c/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* info: may be NULL. The model may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_translator(MulciberContext* context,
                                                     MulciberDevice* device,
                                                     const MulciberModel* model,
                                                     const MulciberLoadInfo* info,
                                                     MulciberTranslator** translator);
MULCIBER_API void mulciber_destroy_translator(MulciberTranslator* translator);

/* Frees device memory that is kept for later texts, see Translator::trim(). */
MULCIBER_API MulciberStatus mulciber_trim(MulciberContext* context, MulciberTranslator* translator);

typedef struct MulciberTranslateInfo {
  uint32_t size;
  uint32_t beams;          /* 0: the model's own */
  uint32_t max_new_tokens; /* 0: the model's own */
} MulciberTranslateInfo;

/* info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_begin_translation(MulciberContext* context,
                                                       MulciberTranslator* translator,
                                                       const char* text,
                                                       const MulciberTranslateInfo* info,
                                                       MulciberTask** task);

typedef struct MulciberBeam {
  uint32_t size;
  MulciberBool finished; /* it has ended */
  const char* text;
  float score;
  uint32_t id_count;
  const uint32_t* ids;
} MulciberBeam;

/* Gives all hypotheses of a translation: the finished ones, then the others, both best first. The
 * list is stepped through by MulciberBeam::size. */
MULCIBER_API MulciberStatus mulciber_beams(MulciberContext* context, MulciberTask* task,
                                           uint32_t* count, const MulciberBeam** beams);

#ifdef __cplusplus
}
#endif

#endif
