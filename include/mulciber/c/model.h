/* Mulciber for C: files of models, and options of loading. C11. */
#ifndef MULCIBER_C_MODEL_H
#define MULCIBER_C_MODEL_H

#include "mulciber/c/adapter.h"
#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

MULCIBER_API MulciberStatus mulciber_open_model(MulciberContext* context, const char* path,
                                                MulciberModel** model);
MULCIBER_API void mulciber_destroy_model(MulciberModel* model);

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

typedef enum MulciberKeyValueStorage {
  MULCIBER_KEY_VALUES_F16 = 0,
  MULCIBER_KEY_VALUES_F32 = 1,  /* excludes half_activations */
  MULCIBER_KEY_VALUES_Q8_0 = 2, /* ggml's blocks of 32, see KeyValueStorage */
  MULCIBER_KEY_VALUE_STORAGE_MAX = 0x7fffffff
} MulciberKeyValueStorage;

/* An attention head; both indices count from 0. */
typedef struct MulciberHeadNumber {
  uint32_t size;
  uint32_t layer, head;
} MulciberHeadNumber;

typedef struct MulciberLoadInfo {
  uint32_t size;
  MulciberBool half_weights;     /* keep matrices in 16 bits even where the file holds 32 */
  MulciberBool half_activations; /* activations and caches in 16 bits */
  uint32_t context;              /* language models: tokens; 0: the model's own, at most 4096 */
  uint64_t memory_limit;         /* bytes; 0: what the device has available */
  void (*progress)(void* user, uint64_t done, uint64_t total); /* bytes of weights; may be NULL */
  void* user;
  const MulciberAdapter* adapters; /* all have the size of the first */
  uint32_t adapter_count;
  /* Merge adapters into the weights, as always for models that do not generate text. */
  MulciberBool merge_adapters;
  /* The fields from here on are for language models alone. */
  MulciberBool fast_activations;      /* 8 bits, for quantized weights; see LoadOptions */
  MulciberKeyValueStorage key_values; /* type of the key-value cache */
  /* Texts that mulciber_generate_all() continues at a time, or slots of a batch generator; each
   * takes the memory of a context; 0: 1. */
  uint32_t sequences;
  uint32_t masked_head_count;
  const MulciberHeadNumber* masked_heads; /* heads whose output is 0; all have the first's size */
} MulciberLoadInfo;

#ifdef __cplusplus
}
#endif

#endif
