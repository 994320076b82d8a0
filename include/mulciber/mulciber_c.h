/* Mulciber for C: models on a Vulkan device of the host's, in slices that fit its frames. The rules
 * are those of mulciber/embedding.h, which docs/guide/embedding.md explains. C11.
 *
 * Every function that can fail returns a MulciberStatus; mulciber_message() then says what failed,
 * where, and what to do about it. No exception leaves a function. Structures begin with their size,
 * so that programs and libraries of different versions go together: set it to sizeof, and what is
 * not set to 0. Objects are destroyed by their owner in any order, each once, the VkDevice after
 * all of them; destroying NULL does nothing. Texts are UTF-8. An object is used by one thread at a
 * time; a context by one thread. */
#ifndef MULCIBER_MULCIBER_C_H
#define MULCIBER_MULCIBER_C_H

#include <stddef.h>
#include <stdint.h>

#include <vulkan/vulkan_core.h>

#include "mulciber/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum MulciberStatus {
  MULCIBER_OK = 0,
  MULCIBER_ERROR_UNAVAILABLE = 1,   /* no such device, or it lacks something required */
  MULCIBER_ERROR_OUT_OF_MEMORY = 2, /* of the device or the host */
  MULCIBER_ERROR_DEVICE_LOST = 3,   /* sticky: everything can be destroyed, nothing else works */
  MULCIBER_ERROR_DEVICE = 4,        /* another failure of a Vulkan call */
  MULCIBER_ERROR_KERNEL = 5,        /* no kernel serves, or the driver refused one */
  MULCIBER_ERROR_SETTING = 6,       /* an option, argument or order of calls that means nothing */
  MULCIBER_ERROR_MODEL = 7,         /* a file or text that cannot be used */
  MULCIBER_ERROR_HOST = 8,          /* an exception of another kind, such as one of a callback */
  MULCIBER_STATUS_MAX = 0x7fffffff
} MulciberStatus;

typedef struct MulciberContext MulciberContext;         /* the last message */
typedef struct MulciberDevice MulciberDevice;           /* a device, borrowed or opened */
typedef struct MulciberModel MulciberModel;             /* a model's files, open */
typedef struct MulciberTranslator MulciberTranslator;   /* a translation model on a device */
typedef struct MulciberGenerator MulciberGenerator;     /* a language model on a device */
typedef struct MulciberTextEncoder MulciberTextEncoder; /* vectors of texts on a device */
typedef struct MulciberTask MulciberTask;       /* a translation, an answer, a vector, maps */
typedef struct MulciberGrammar MulciberGrammar; /* of mulciber_make_grammar(), mulciber_c_tasks.h */

/* The version of the library that is linked, as "1.2.3". */
MULCIBER_API const char* mulciber_version(void);

MULCIBER_API MulciberStatus mulciber_create_context(MulciberContext** context);
MULCIBER_API void mulciber_destroy_context(MulciberContext* context);
/* Of the last call with this context that failed; "" where none has. Until the next with it. */
MULCIBER_API const char* mulciber_message(const MulciberContext* context);

/* ---- Before the host creates its device ---- */

typedef struct MulciberPhysicalDevice {
  uint32_t size;
  VkInstance instance;
  VkPhysicalDevice physical_device;
  PFN_vkGetInstanceProcAddr get_instance_proc_addr;
  uint32_t api_version; /* VkApplicationInfo::apiVersion: VK_API_VERSION_1_1 or newer */
} MulciberPhysicalDevice;

typedef enum MulciberRequirementKind {
  MULCIBER_REQUIREMENT_EXTENSION = 0,
  MULCIBER_REQUIREMENT_FEATURE = 1,
  MULCIBER_REQUIREMENT_QUEUE = 2,
  MULCIBER_REQUIREMENT_LIMIT = 3,
  MULCIBER_REQUIREMENT_MEMORY = 4,
  MULCIBER_REQUIREMENT_MAX = 0x7fffffff
} MulciberRequirementKind;

typedef struct MulciberRequirement {
  MulciberRequirementKind kind;
  const char* name;
  VkBool32 required, available;
  const char* brings; /* what it is for */
} MulciberRequirement;

typedef struct MulciberRequirements {
  uint32_t size;
  uint32_t requirement_count;
  const MulciberRequirement* requirements;
  uint32_t extension_count;                  /* to be enabled: those that are there */
  const char* const* extensions;             /* as ppEnabledExtensionNames */
  const VkPhysicalDeviceFeatures2* features; /* as pNext of VkDeviceCreateInfo */
  uint32_t queue_family;                     /* the first that computes */
  VkBool32 fits;                             /* the device, and the model where one was given */
  const char* obstacles;                     /* why not, a line each; "" where it fits */
  uint64_t weight_bytes, context_bytes;      /* of device memory, of the model */
} MulciberRequirements;

/* model: may be NULL. What is pointed to lives until the next call with this context. */
MULCIBER_API MulciberStatus mulciber_requirements(MulciberContext* context,
                                                  const MulciberPhysicalDevice* physical_device,
                                                  const MulciberModel* model,
                                                  MulciberRequirements* requirements);

/* ---- Devices ---- */

typedef enum MulciberMemoryUsage {
  MULCIBER_MEMORY_WEIGHTS = 0,     /* written once, read by every step */
  MULCIBER_MEMORY_ACTIVATIONS = 1, /* caches, states and intermediate results */
  MULCIBER_MEMORY_STAGING = 2,     /* written by the host: host-visible and coherent, mapped */
  MULCIBER_MEMORY_READBACK = 3,    /* read by the host: host-visible and coherent, mapped */
  MULCIBER_MEMORY_MAX = 0x7fffffff
} MulciberMemoryUsage;

typedef struct MulciberMemoryRequest {
  VkBuffer buffer; /* not yet bound */
  VkMemoryRequirements requirements;
  MulciberMemoryUsage usage;
  VkMemoryPropertyFlags required, preferred;
  VkBool32 device_address; /* VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT is needed */
  float priority;          /* MulciberDeviceInfo::memory_priority */
} MulciberMemoryRequest;

typedef struct MulciberMemory {
  VkDeviceMemory memory;
  VkDeviceSize offset;
  void* mapped; /* needed where host-visible memory is required */
  void* handle; /* the host's own */
} MulciberMemory;

typedef struct MulciberDeviceInfo {
  uint32_t size;
  const MulciberPhysicalDevice* physical;
  VkDevice device;
  uint32_t extension_count; /* that were enabled */
  const char* const* extensions;
  const VkPhysicalDeviceFeatures2* features; /* that were enabled; NULL: none */
  VkQueue queue;
  uint32_t queue_family;
  /* Called around every use of the queue; NULL: nobody else uses it. */
  void (*lock_queue)(void* user);
  void (*unlock_queue)(void* user);
  /* In place of vkQueueSubmit; NULL: that. */
  VkResult (*submit)(void* user, VkQueue queue, const VkSubmitInfo* submission, VkFence fence);
  /* NULL: vkAllocateMemory and vkFreeMemory. Blocks of 8 MiB and more are asked for. */
  VkResult (*allocate)(void* user, const MulciberMemoryRequest* request, MulciberMemory* memory);
  void (*free)(void* user, const MulciberMemory* memory);
  void* user;
  uint64_t memory_budget;     /* bytes of device memory; 0: what the process may use */
  const void* pipeline_cache; /* of an earlier run; may be NULL */
  size_t pipeline_cache_size;
  uint32_t pipeline_threads; /* that compile together; 0 and 1: the caller's own alone */
  const char* cache_folder;  /* for verdicts and pipelines; NULL: no file is touched */
  /* Up to 1; 0: Vulkan's own, 0.5. Memory of lower priority leaves the device first when it is
   * short, where memoryPriority is enabled. */
  float memory_priority;
  float occupancy_priority; /* up to 1; 0: Vulkan's own, 0.5. DeviceOptions says what it means */
} MulciberDeviceInfo;

/* The VkDevice must outlive all that is made of it. */
MULCIBER_API MulciberStatus mulciber_adopt_device(MulciberContext* context,
                                                  const MulciberDeviceInfo* info,
                                                  MulciberDevice** device);
/* A device of the library's own, by number, part of a name, or NULL for the best. */
MULCIBER_API MulciberStatus mulciber_open_device(MulciberContext* context, const char* name,
                                                 MulciberDevice** device);
MULCIBER_API void mulciber_destroy_device(MulciberDevice* device);
/* bytes NULL: says the size. Otherwise writes at most *size bytes, and says how many. */
MULCIBER_API MulciberStatus mulciber_pipeline_cache(MulciberContext* context,
                                                    MulciberDevice* device, size_t* size,
                                                    void* bytes);

/* ---- Models ---- */

MULCIBER_API MulciberStatus mulciber_open_model(MulciberContext* context, const char* path,
                                                MulciberModel** model);
MULCIBER_API void mulciber_destroy_model(MulciberModel* model);

typedef struct MulciberLoadInfo {
  uint32_t size;
  VkBool32 half_weights;     /* matrices in 16 bits even where the file holds 32 */
  VkBool32 half_activations; /* activations and caches in 16 bits */
  uint32_t context;          /* of language models: tokens; 0: the model's own, at most 4096 */
  uint64_t memory_limit;     /* bytes; 0: what the device has available */
  void (*progress)(void* user, uint64_t done, uint64_t total); /* bytes of weights; may be NULL */
  void* user;
} MulciberLoadInfo;

/* info: may be NULL. The model may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_translator(MulciberContext* context,
                                                     MulciberDevice* device,
                                                     const MulciberModel* model,
                                                     const MulciberLoadInfo* info,
                                                     MulciberTranslator** translator);
MULCIBER_API void mulciber_destroy_translator(MulciberTranslator* translator);
MULCIBER_API MulciberStatus mulciber_load_generator(MulciberContext* context,
                                                    MulciberDevice* device,
                                                    const MulciberModel* model,
                                                    const MulciberLoadInfo* info,
                                                    MulciberGenerator** generator);
/* Another conversation with the same model, which shares its weights: of `tokens` tokens of context
 * at most, 0: as many as that generator's. Either may be destroyed first; one thread uses both. */
MULCIBER_API MulciberStatus mulciber_new_conversation(MulciberContext* context,
                                                      const MulciberGenerator* generator,
                                                      uint32_t tokens,
                                                      MulciberGenerator** conversation);
MULCIBER_API void mulciber_destroy_generator(MulciberGenerator* generator);
/* Keeps or takes back the context of a generator: its tokens, with their keys and values. */
MULCIBER_API MulciberStatus mulciber_save_snapshot(MulciberContext* context,
                                                   MulciberGenerator* generator, const char* file);
MULCIBER_API MulciberStatus mulciber_load_snapshot(MulciberContext* context,
                                                   MulciberGenerator* generator, const char* file);

/* The same in memory, as what is taken before a device is lost. bytes NULL: says the size.
 * Otherwise writes at most *size bytes, and says how many. */
MULCIBER_API MulciberStatus mulciber_take_snapshot(MulciberContext* context,
                                                   MulciberGenerator* generator, size_t* size,
                                                   void* bytes);
MULCIBER_API MulciberStatus mulciber_restore_snapshot(MulciberContext* context,
                                                      MulciberGenerator* generator,
                                                      const void* bytes, size_t size);

/* ---- Vectors of texts ---- */

MULCIBER_API MulciberStatus mulciber_load_text_encoder(MulciberContext* context,
                                                       MulciberDevice* device,
                                                       const MulciberModel* model,
                                                       const MulciberLoadInfo* info,
                                                       MulciberTextEncoder** encoder);
MULCIBER_API void mulciber_destroy_text_encoder(MulciberTextEncoder* encoder);
/* Numbers in a vector. */
MULCIBER_API uint32_t mulciber_vector_width(const MulciberTextEncoder* encoder);

typedef struct MulciberEmbedInfo {
  uint32_t size;
  VkBool32 refuse_long; /* texts longer than the model takes: an error instead of a cut */
  const char* prompt;   /* stands before every text; NULL: what the model's files say */
} MulciberEmbedInfo;

/* Vectors of `count` texts, one after another. Pooled and normalized as the model's files say.
 * Submits and waits, unlike tasks. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_embed(MulciberContext* context, MulciberTextEncoder* encoder,
                                           uint32_t count, const char* const* texts,
                                           const MulciberEmbedInfo* info, float* vectors);

/* ---- Tasks ---- */

typedef struct MulciberTranslateInfo {
  uint32_t size;
  uint32_t beams;          /* 0: the model's own */
  uint32_t max_new_tokens; /* 0: the model's own */
} MulciberTranslateInfo;

typedef struct MulciberGenerateInfo {
  uint32_t size;
  uint32_t max_new_tokens; /* 0: as many as the context has room for */
  VkBool32 sample;         /* by the numbers below; otherwise as the model's files ask for */
  float temperature;       /* 0: the likeliest token, always */
  uint32_t top_k;          /* 0: all */
  float top_p;             /* 0 and from 1 on: all */
  float min_p;
  uint64_t seed;
  VkBool32 ignore_end; /* go on behind the model's own end of text */
  /* Pieces of the answer as they are known, whole characters; may be NULL. */
  void (*on_text)(void* user, const char* text, size_t bytes);
  void* user;
  const MulciberGrammar* grammar; /* what the answer may be; NULL: anything */
} MulciberGenerateInfo;

/* info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_begin_translation(MulciberContext* context,
                                                       MulciberTranslator* translator,
                                                       const char* text,
                                                       const MulciberTranslateInfo* info,
                                                       MulciberTask** task);
MULCIBER_API MulciberStatus mulciber_begin_generation(MulciberContext* context,
                                                      MulciberGenerator* generator,
                                                      const char* prompt,
                                                      const MulciberGenerateInfo* info,
                                                      MulciberTask** task);
/* Waits for slices of mulciber_step(). Those of mulciber_record() must have ended, and
 * mulciber_completed() been told: a library built without NDEBUG checks that. */
MULCIBER_API void mulciber_destroy_task(MulciberTask* task);

typedef struct MulciberSlice {
  uint64_t number;     /* 1 is a task's first; 0: there was nothing to do */
  uint32_t dispatches; /* of compute shaders */
  double estimated_us; /* on the device */
} MulciberSlice;

/* Records what is expected to fit into the host's command buffer, outside of render passes. */
MULCIBER_API MulciberStatus mulciber_record(MulciberContext* context, MulciberTask* task,
                                            VkCommandBuffer commands, double budget_us,
                                            MulciberSlice* slice);
/* Slices up to this number have ended on the device. */
MULCIBER_API MulciberStatus mulciber_completed(MulciberContext* context, MulciberTask* task,
                                               uint64_t number);

typedef struct MulciberSemaphores {
  uint32_t size;
  uint32_t wait_count;
  const VkSemaphore* waits;
  const VkPipelineStageFlags* wait_stages;
  const uint64_t* wait_values; /* of timeline semaphores; NULL: none is one */
  uint32_t signal_count;
  const VkSemaphore* signals;
  const uint64_t* signal_values;
} MulciberSemaphores;

typedef struct MulciberStep {
  MulciberSlice slice;   /* number 0: nothing was submitted */
  VkBool32 waits;        /* nothing was, because earlier slices have not ended */
  VkSemaphore semaphore; /* reaches `value` when the slice has ended; null without timelines */
  uint64_t value;
} MulciberStep;

/* Submits what is expected to fit, without waiting. semaphores: may be NULL. */
MULCIBER_API MulciberStatus mulciber_step(MulciberContext* context, MulciberTask* task,
                                          double budget_us, const MulciberSemaphores* semaphores,
                                          MulciberStep* step);
/* Waits for slices that mulciber_step() submitted. */
MULCIBER_API MulciberStatus mulciber_wait(MulciberContext* context, MulciberTask* task);
MULCIBER_API VkBool32 mulciber_is_done(const MulciberTask* task);
MULCIBER_API void mulciber_cancel(MulciberTask* task);
/* What is known of the text so far; once the task is done, all of it. Until the next call with this
 * task. */
MULCIBER_API MulciberStatus mulciber_text(MulciberContext* context, MulciberTask* task,
                                          const char** text);

/* ---- Attention maps of a translation ---- */

typedef enum MulciberAttentionKind {
  MULCIBER_ATTENTION_ENCODER = 0,
  MULCIBER_ATTENTION_DECODER = 1,
  MULCIBER_ATTENTION_CROSS = 2,
  MULCIBER_ATTENTION_MAX = 0x7fffffff
} MulciberAttentionKind;

typedef struct MulciberAttentionMap {
  uint32_t size;
  MulciberAttentionKind kind;
  uint32_t layer, head;
} MulciberAttentionMap;

/* translation: a task of this translator that is done; it may be destroyed afterwards. The maps are
 * there once the task's last slice has run, until it is destroyed. */
MULCIBER_API MulciberStatus mulciber_begin_attention(MulciberContext* context,
                                                     MulciberTranslator* translator,
                                                     MulciberTask* translation,
                                                     MulciberTask** task);
/* Whether the last slice of such a task was recorded, or submitted: maps can be recorded then. */
MULCIBER_API VkBool32 mulciber_is_recorded(const MulciberTask* task);
/* Width: keys; height: queries. */
MULCIBER_API MulciberStatus mulciber_attention_extent(MulciberContext* context, MulciberTask* task,
                                                      MulciberAttentionKind kind,
                                                      VkExtent2D* extent);

/* Made with VK_IMAGE_USAGE_TRANSFER_DST_BIT. Transitions and barriers come with the copy. */
typedef struct MulciberHostImage {
  uint32_t size;
  VkImage image;
  VkFormat format;   /* VK_FORMAT_R32_SFLOAT */
  VkExtent2D extent; /* in texels, of the mip level */
  uint32_t mip_level, array_layer;
  VkOffset2D offset;          /* where the first number goes */
  VkImageLayout layout;       /* that it stands in */
  VkImageLayout final_layout; /* 0: VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL */
  /* What uses it, before and afterwards; stages 0: fragment shaders, which read it. */
  VkPipelineStageFlags stages;
  VkAccessFlags accesses;
  /* It is exclusive, and owned by this family, which is not the one that was lent: the copy has
   * its half of the transfers to it and back, the host has the other. */
  VkBool32 changes_family;
  uint32_t queue_family;
} MulciberHostImage;

/* Made with VK_BUFFER_USAGE_TRANSFER_DST_BIT. */
typedef struct MulciberHostBuffer {
  uint32_t size;
  VkBuffer buffer;
  VkDeviceSize offset, bytes;  /* the offset in fours */
  VkPipelineStageFlags stages; /* as MulciberHostImage */
  VkAccessFlags accesses;
  VkBool32 changes_family;
  uint32_t queue_family;
} MulciberHostBuffer;

/* A texel for each probability, query 0 in the first row. Behind the task's last slice, outside of
 * render passes. */
MULCIBER_API MulciberStatus mulciber_record_attention_image(MulciberContext* context,
                                                            MulciberTask* task,
                                                            VkCommandBuffer commands,
                                                            const MulciberHostImage* image,
                                                            const MulciberAttentionMap* map);
/* Floats, row after row. */
MULCIBER_API MulciberStatus mulciber_record_attention_buffer(MulciberContext* context,
                                                             MulciberTask* task,
                                                             VkCommandBuffer commands,
                                                             const MulciberHostBuffer* buffer,
                                                             const MulciberAttentionMap* map);

#ifdef __cplusplus
}
#endif

#endif
