/* Mulciber for C: models that are loaded a part in every frame, and pipelines that are compiled a
 * few at a time. The rules are those of mulciber/model_loader.h and of mulciber_c.h. C11. */
#ifndef MULCIBER_MULCIBER_C_LOAD_H
#define MULCIBER_MULCIBER_C_LOAD_H

#include "mulciber/mulciber_c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberLoader MulciberLoader; /* a model on its way to a device */
typedef struct MulciberWarmup MulciberWarmup; /* pipelines on their way */

/* A model's file as the host has it: in memory, or behind a function. */
typedef struct MulciberFile {
  uint32_t size;
  const char* name;    /* as in the model's folder: "config.json", "1_Pooling/config.json" */
  const void* bytes;   /* all of it, where `read` is NULL */
  uint64_t byte_count; /* that it has */
  /* Fills `into` from `offset` on, and says with how many bytes: fewer than asked for are an error.
   * At most 1 MiB at a time. Called by calls of the library's that read files, on their thread. */
  size_t (*read)(void* user, uint64_t offset, void* into, size_t bytes);
  void* user;
} MulciberFile;

/* A model of these files and no others; all have the size of the first. They must stay until the
 * model and what was loaded of it are destroyed. name: for messages; may be NULL. */
MULCIBER_API MulciberStatus mulciber_open_model_files(MulciberContext* context, const char* name,
                                                      uint32_t count, const MulciberFile* files,
                                                      MulciberModel** model);

typedef struct MulciberLoadProgress {
  uint64_t done, total; /* bytes of weights */
  VkBool32 complete;
} MulciberLoadProgress;

/* Refuses what does not fit before anything is allocated. info: may be NULL. The model may be
 * destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_begin_load(MulciberContext* context, MulciberDevice* device,
                                                const MulciberModel* model,
                                                const MulciberLoadInfo* info,
                                                MulciberLoader** loader);
/* A LoRA adapter: AdapterFile of mulciber/load_options.h. */
typedef struct MulciberAdapter {
  uint32_t size;
  float scale;      /* what it is added with; 0: not at all */
  const char* path; /* folder or file; of mulciber_use_adapters() NULL */
  const char* name; /* NULL: that of the folder, or of the file without its ending */
} MulciberAdapter;

/* The same with adapters, which all have the size of the first. merge: they are added to the
 * weights for good, as always for models that do not generate text. */
MULCIBER_API MulciberStatus mulciber_begin_load_adapted(
    MulciberContext* context, MulciberDevice* device, const MulciberModel* model,
    const MulciberLoadInfo* info, uint32_t count, const MulciberAdapter* adapters, VkBool32 merge,
    MulciberLoader** loader);
/* What generations that are begun from now on add of them, by their names; those that are not named
 * are left out. Before the first call each has the scale that it was loaded with. */
MULCIBER_API MulciberStatus mulciber_use_adapters(MulciberContext* context,
                                                  MulciberGenerator* generator, uint32_t count,
                                                  const MulciberAdapter* adapters);
/* At most so many bytes of weights, or one piece where that is more. progress: may be NULL. */
MULCIBER_API MulciberStatus mulciber_step_load(MulciberContext* context, MulciberLoader* loader,
                                               uint64_t bytes, MulciberLoadProgress* progress);
/* Of a loader that is complete, the one that fits the model, once. */
MULCIBER_API MulciberStatus mulciber_finish_translator(MulciberContext* context,
                                                       MulciberLoader* loader,
                                                       MulciberTranslator** translator);
MULCIBER_API MulciberStatus mulciber_finish_generator(MulciberContext* context,
                                                      MulciberLoader* loader,
                                                      MulciberGenerator** generator);
MULCIBER_API MulciberStatus mulciber_finish_text_encoder(MulciberContext* context,
                                                         MulciberLoader* loader,
                                                         MulciberTextEncoder** encoder);
/* Cancels what is not complete, and gives the device's memory back. */
MULCIBER_API void mulciber_destroy_loader(MulciberLoader* loader);

/* Of tasks that translate texts of at most so many tokens; 0: what the model takes. info: may be
 * NULL. */
MULCIBER_API MulciberStatus mulciber_warm_translator(MulciberContext* context,
                                                     const MulciberTranslator* translator,
                                                     const MulciberTranslateInfo* info,
                                                     uint32_t source_tokens,
                                                     MulciberWarmup** warmup);
MULCIBER_API MulciberStatus mulciber_warm_generator(MulciberContext* context,
                                                    const MulciberGenerator* generator,
                                                    MulciberWarmup** warmup);
/* Of tasks that compute vectors of texts of at most so many tokens. */
MULCIBER_API MulciberStatus mulciber_warm_text_encoder(MulciberContext* context,
                                                       const MulciberTextEncoder* encoder,
                                                       const MulciberEmbedInfo* info,
                                                       uint32_t tokens, MulciberWarmup** warmup);
/* Of attention tasks with such rooms, of translations or of answers: the other one is NULL. */
MULCIBER_API MulciberStatus mulciber_warm_attention(MulciberContext* context,
                                                    const MulciberTranslator* translator,
                                                    const MulciberGenerator* generator,
                                                    uint32_t source_room, uint32_t room,
                                                    MulciberWarmup** warmup);
/* Compiles up to `count` pipelines, on any thread. left: how many there are still; may be NULL. */
MULCIBER_API MulciberStatus mulciber_prewarm(MulciberContext* context, MulciberWarmup* warmup,
                                             uint32_t count, uint32_t* left);
MULCIBER_API void mulciber_destroy_warmup(MulciberWarmup* warmup);

/* Pipelines that were compiled on a device so far. */
MULCIBER_API uint64_t mulciber_pipelines_made(MulciberDevice* device);

#ifdef __cplusplus
}
#endif

#endif
