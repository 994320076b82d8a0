/* Mulciber for C: models that are loaded in parts, one in every frame, and pipelines that are
 * compiled a few at a time. The rules are those of mulciber/model_loader.h and of mulciber_c.h.
 * C11. */
#ifndef MULCIBER_MULCIBER_C_LOAD_H
#define MULCIBER_MULCIBER_C_LOAD_H

#include "mulciber/mulciber_c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberLoader MulciberLoader; /* loads a model in parts */
typedef struct MulciberWarmup MulciberWarmup; /* compiles pipelines */

/* A model's file that the application provides, in memory or through a function. */
typedef struct MulciberFile {
  uint32_t size;
  const char* name;    /* path in the model's folder: "config.json", "1_Pooling/config.json" */
  const void* bytes;   /* the whole file, where `read` is NULL */
  uint64_t byte_count; /* size of the file */
  /* Fills `into` from `offset` on, with at most 1 MiB, and returns the number of bytes; fewer than
   * asked for are an error. The functions that read files call it on their thread. */
  size_t (*read)(void* user, uint64_t offset, void* into, size_t bytes);
  void* user;
} MulciberFile;

/* Opens a model from these files and no others; all have the size of the first. The files must stay
 * valid until the model and everything loaded from it are destroyed. name: for messages; may be
 * NULL. */
MULCIBER_API MulciberStatus mulciber_open_model_files(MulciberContext* context, const char* name,
                                                      uint32_t count, const MulciberFile* files,
                                                      MulciberModel** model);

typedef struct MulciberLoadProgress {
  uint64_t done, total; /* bytes of weights */
  VkBool32 complete;
} MulciberLoadProgress;

/* Fails for a model that does not fit, before anything is allocated. info: may be NULL. The model
 * may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_begin_load(MulciberContext* context, MulciberDevice* device,
                                                const MulciberModel* model,
                                                const MulciberLoadInfo* info,
                                                MulciberLoader** loader);
/* A LoRA adapter, see AdapterFile in mulciber/load_options.h. */
typedef struct MulciberAdapter {
  uint32_t size;
  float scale;      /* 0: the adapter is off */
  const char* path; /* folder or file; NULL for mulciber_use_adapters() */
  const char* name; /* NULL: the folder's name, or the file's without extension */
} MulciberAdapter;

/* Begins to load with adapters, which all have the size of the first. merge: they are merged into
 * the weights, as always for models that do not generate text. */
MULCIBER_API MulciberStatus mulciber_begin_load_adapted(
    MulciberContext* context, MulciberDevice* device, const MulciberModel* model,
    const MulciberLoadInfo* info, uint32_t count, const MulciberAdapter* adapters, VkBool32 merge,
    MulciberLoader** loader);
/* Selects adapters by name for generations begun afterwards; adapters that are not named are off.
 * Before the first call each adapter has the scale that it was loaded with. */
MULCIBER_API MulciberStatus mulciber_use_adapters(MulciberContext* context,
                                                  MulciberGenerator* generator, uint32_t count,
                                                  const MulciberAdapter* adapters);
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
/* Cancels an incomplete load and frees its device memory. */
MULCIBER_API void mulciber_destroy_loader(MulciberLoader* loader);

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

/* Number of pipelines compiled on a device so far. */
MULCIBER_API uint64_t mulciber_pipelines_made(MulciberDevice* device);

#ifdef __cplusplus
}
#endif

#endif
