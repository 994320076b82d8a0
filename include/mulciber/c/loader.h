/* Mulciber for C: models that are loaded in parts, one in every frame. The rules are those of
 * mulciber/model_loader.h. C11. */
#ifndef MULCIBER_C_LOADER_H
#define MULCIBER_C_LOADER_H

#include "mulciber/c/adapter.h"
#include "mulciber/c/image_classifier.h"
#include "mulciber/c/image_encoder.h"
#include "mulciber/c/image_text_matcher.h"
#include "mulciber/c/image_text_reader.h"
#include "mulciber/c/model.h"
#include "mulciber/c/transcriber.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberLoader MulciberLoader; /* loads a model in parts */

typedef struct MulciberLoadProgress {
  uint32_t size;
  MulciberBool complete;
  uint64_t done, total; /* bytes of weights */
} MulciberLoadProgress;

/* Fails for a model that does not fit, before anything is allocated. info: may be NULL. The model
 * may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_begin_load(MulciberContext* context, MulciberDevice* device,
                                                const MulciberModel* model,
                                                const MulciberLoadInfo* info,
                                                MulciberLoader** loader);

/* Loads at most `bytes` bytes of weights, or one unit (see ModelLoader::step()) if that is larger.
 * progress: may be NULL. */
MULCIBER_API MulciberStatus mulciber_step_load(MulciberContext* context, MulciberLoader* loader,
                                               uint64_t bytes, MulciberLoadProgress* progress);

/* Makes the object for the kind of the model. Call one of them, once, when loading is complete. */
MULCIBER_API MulciberStatus mulciber_finish_translator(MulciberContext* context,
                                                       MulciberLoader* loader,
                                                       MulciberTranslator** translator);
MULCIBER_API MulciberStatus mulciber_finish_generator(MulciberContext* context,
                                                      MulciberLoader* loader,
                                                      MulciberGenerator** generator);
MULCIBER_API MulciberStatus mulciber_finish_text_encoder(MulciberContext* context,
                                                         MulciberLoader* loader,
                                                         MulciberTextEncoder** encoder);
MULCIBER_API MulciberStatus mulciber_finish_image_encoder(MulciberContext* context,
                                                          MulciberLoader* loader,
                                                          MulciberImageEncoder** encoder);
MULCIBER_API MulciberStatus mulciber_finish_image_classifier(MulciberContext* context,
                                                             MulciberLoader* loader,
                                                             MulciberImageClassifier** classifier);
MULCIBER_API MulciberStatus mulciber_finish_image_text_matcher(MulciberContext* context,
                                                               MulciberLoader* loader,
                                                               MulciberImageTextMatcher** matcher);
MULCIBER_API MulciberStatus mulciber_finish_image_text_reader(MulciberContext* context,
                                                              MulciberLoader* loader,
                                                              MulciberImageTextReader** reader);
MULCIBER_API MulciberStatus mulciber_finish_transcriber(MulciberContext* context,
                                                        MulciberLoader* loader,
                                                        MulciberTranscriber** transcriber);

/* Cancels an incomplete load and frees its device memory. */
MULCIBER_API void mulciber_destroy_loader(MulciberLoader* loader);

/* ---- Deprecated names of version 0.1 ---- */

MULCIBER_DEPRECATED("use mulciber_begin_load and MulciberLoadInfo::adapters")
MULCIBER_API MulciberStatus mulciber_begin_load_adapted(
    MulciberContext* context, MulciberDevice* device, const MulciberModel* model,
    const MulciberLoadInfo* info, uint32_t count, const MulciberAdapter* adapters,
    MulciberBool merge, MulciberLoader** loader);

#ifdef __cplusplus
}
#endif

#endif
