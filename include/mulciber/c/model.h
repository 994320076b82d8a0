/* Mulciber for C: files of models, and options of loading. C11. */
#ifndef MULCIBER_C_MODEL_H
#define MULCIBER_C_MODEL_H

#include "mulciber/c/adapter.h"
#include "mulciber/c/context.h"
#include "mulciber/c/result.h"

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

/* What a model can do, and the function that loads it for that. */
typedef enum MulciberCapability {
  MULCIBER_CAPABILITY_CONTINUE_TEXT = 0,    /* mulciber_load_generator */
  MULCIBER_CAPABILITY_TRANSLATE = 1,        /* mulciber_load_translator */
  MULCIBER_CAPABILITY_REWRITE_TEXT = 2,     /* mulciber_load_translator, for other tasks */
  MULCIBER_CAPABILITY_ENCODE_TEXT = 3,      /* mulciber_load_text_encoder */
  MULCIBER_CAPABILITY_CLASSIFY_TEXT = 4,    /* mulciber_load_classifier */
  MULCIBER_CAPABILITY_ANSWER = 5,           /* mulciber_load_passage_reader */
  MULCIBER_CAPABILITY_ENCODE_IMAGES = 6,    /* mulciber_load_image_encoder */
  MULCIBER_CAPABILITY_CLASSIFY_IMAGES = 7,  /* mulciber_load_image_classifier */
  MULCIBER_CAPABILITY_MATCH = 8,            /* mulciber_load_image_text_matcher */
  MULCIBER_CAPABILITY_TRANSCRIBE = 9,       /* mulciber_load_transcriber */
  MULCIBER_CAPABILITY_READ_IMAGE_TEXT = 10, /* mulciber_load_image_text_reader */
  MULCIBER_CAPABILITY_SEE_IMAGES = 11,      /* mulciber_load_generator, images in prompts */
  MULCIBER_CAPABILITY_MAX = 0x7fffffff
} MulciberCapability;

/* A model by its files. */
typedef struct MulciberModelReport {
  uint32_t size;
  MulciberBool supported; /* the library has the family */
  const char* path;
  const char* format;      /* "Hugging Face folder", "GGUF file, version 3", "safetensors file" */
  const char* family;      /* model_type of config.json, or general.architecture; may be "" */
  const char* model_class; /* the class that wrote config.json: "BertModel"; may be "" */
  /* Capabilities, none unless it is supported. What it was trained for comes first: a classifier
   * can classify and encode. */
  const MulciberCapability* capabilities;
  uint32_t capability_count;
  MulciberBool chat_template;
  uint32_t files, tensors; /* files that hold weights */
  uint64_t parameters;     /* elements of all tensors */
  uint64_t bytes;          /* of all tensors, in the files */
  /* Sizes; 0: the model has no such part, or is not supported. */
  uint32_t vocabulary; /* ids that the model's output texts consist of */
  uint32_t context;    /* tokens of the longest text */
  uint32_t encoder_layers, encoder_heads;
  uint32_t decoder_layers, decoder_heads;
} MulciberModelReport;

/* Describes a model, so that a program can choose the function that loads it; no device is needed.
 * The returned pointers are valid until the model is described again or destroyed.
 * MULCIBER_ERROR_MODEL when the configuration of a supported family is invalid. */
MULCIBER_API MulciberStatus mulciber_describe_model(MulciberContext* context,
                                                    const MulciberModel* model,
                                                    MulciberModelReport* report);

/* Gives the report that `mulciber inspect --json` prints: hyperparameters, tensors, tokenizer and
 * more. */
MULCIBER_API MulciberStatus mulciber_inspect_model(MulciberContext* context,
                                                   const MulciberModel* model,
                                                   MulciberResult** result, const char** json);

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
