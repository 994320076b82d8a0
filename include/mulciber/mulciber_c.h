/* Mulciber for C: models on the application's Vulkan device, in slices that fit its frames. The
 * rules are those of mulciber/embedding.h, which docs/guide/embedding.md explains. C11.
 *
 * Every function that can fail returns a MulciberStatus; mulciber_message() then says what failed,
 * where, and what to do about it. No exception leaves a function. Structures begin with their size,
 * so that programs and libraries of different versions work together: set it to sizeof, and fields
 * without a value to 0. The caller destroys each object once, in any order, and the VkDevice after
 * all of them; destroying NULL does nothing. Texts are UTF-8. One thread at a time may use an
 * object; a context belongs to one thread. */
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
  MULCIBER_ERROR_OUT_OF_MEMORY = 2, /* device or CPU memory */
  MULCIBER_ERROR_DEVICE_LOST = 3,   /* sticky: everything can be destroyed, nothing else works */
  MULCIBER_ERROR_DEVICE = 4,        /* another failure of a Vulkan call */
  MULCIBER_ERROR_KERNEL = 5,        /* no kernel serves, or the driver refused one */
  MULCIBER_ERROR_SETTING = 6,       /* an invalid option, argument or order of calls */
  MULCIBER_ERROR_MODEL = 7,         /* a file or text that cannot be used */
  MULCIBER_ERROR_HOST = 8,          /* another exception, such as one of a callback */
  MULCIBER_STATUS_MAX = 0x7fffffff
} MulciberStatus;

typedef struct MulciberContext MulciberContext;         /* holds the last message */
typedef struct MulciberDevice MulciberDevice;           /* a device, borrowed or opened */
typedef struct MulciberModel MulciberModel;             /* a model's files, open */
typedef struct MulciberTranslator MulciberTranslator;   /* a translation model on a device */
typedef struct MulciberGenerator MulciberGenerator;     /* a language model on a device */
typedef struct MulciberTextEncoder MulciberTextEncoder; /* a text embedding model on a device */
typedef struct MulciberTask MulciberTask; /* computes a translation, answer, embedding or maps */
typedef struct MulciberGrammar MulciberGrammar; /* for guided decoding, mulciber_c_tasks.h */

/* Version of the linked library, in the form "1.2.3". */
MULCIBER_API const char* mulciber_version(void);

MULCIBER_API MulciberStatus mulciber_create_context(MulciberContext** context);
MULCIBER_API void mulciber_destroy_context(MulciberContext* context);
/* Message of the last failed call with this context; "" if none failed. Valid until the next call
 * with the context. */
MULCIBER_API const char* mulciber_message(const MulciberContext* context);

/* ---- Before the application creates its device ---- */

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
  uint32_t extension_count;                  /* available extensions, to be enabled */
  const char* const* extensions;             /* for ppEnabledExtensionNames */
  const VkPhysicalDeviceFeatures2* features; /* for pNext of VkDeviceCreateInfo */
  uint32_t queue_family;                     /* the first family that supports compute */
  VkBool32 fits;                             /* the device fits, and the model if given */
  const char* obstacles;                     /* reasons, one a line; "" if it fits */
  uint64_t weight_bytes, context_bytes;      /* device memory of the model */
} MulciberRequirements;

/* model: may be NULL. The returned pointers are valid until the next call with this context. */
MULCIBER_API MulciberStatus mulciber_requirements(MulciberContext* context,
                                                  const MulciberPhysicalDevice* physical_device,
                                                  const MulciberModel* model,
                                                  MulciberRequirements* requirements);

/* ---- Devices ---- */

typedef enum MulciberMemoryUsage {
  MULCIBER_MEMORY_WEIGHTS = 0,     /* written once, read by every step */
  MULCIBER_MEMORY_ACTIVATIONS = 1, /* caches, hidden states and intermediate results */
  MULCIBER_MEMORY_STAGING = 2,     /* written by the CPU: host-visible and coherent, mapped */
  MULCIBER_MEMORY_READBACK = 3,    /* read by the CPU: host-visible and coherent, mapped */
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
  void* handle; /* the application's own */
} MulciberMemory;

typedef struct MulciberDeviceInfo {
  uint32_t size;
  const MulciberPhysicalDevice* physical;
  VkDevice device;
  uint32_t extension_count; /* enabled extensions */
  const char* const* extensions;
  const VkPhysicalDeviceFeatures2* features; /* enabled features; NULL: none */
  VkQueue queue;
  uint32_t queue_family;
  /* Called around every use of the queue; NULL: nobody else uses it. */
  void (*lock_queue)(void* user);
  void (*unlock_queue)(void* user);
  /* Called in place of vkQueueSubmit; NULL: vkQueueSubmit is called. */
  VkResult (*submit)(void* user, VkQueue queue, const VkSubmitInfo* submission, VkFence fence);
  /* Allocate and free blocks of 8 MiB and more; NULL: vkAllocateMemory and vkFreeMemory do.
   * */
  VkResult (*allocate)(void* user, const MulciberMemoryRequest* request, MulciberMemory* memory);
  void (*free)(void* user, const MulciberMemory* memory);
  void* user;
  uint64_t memory_budget;     /* bytes of device memory; 0: what the process may use */
  const void* pipeline_cache; /* from an earlier run; may be NULL */
  size_t pipeline_cache_size;
  uint32_t pipeline_threads; /* threads that compile pipelines; 0 or 1: the caller's only */
  const char* cache_folder;  /* for self-test verdicts and pipelines; NULL: no file is touched */
  /* Priority of allocations, up to 1; 0: Vulkan's default, 0.5. Where memoryPriority is enabled,
   * memory of lower priority is evicted first when device memory is short. */
  float memory_priority;
  float occupancy_priority; /* up to 1; 0: Vulkan's default, 0.5; see DeviceOptions */
} MulciberDeviceInfo;

/* Wraps the application's device. The VkDevice must outlive everything made from it. */
MULCIBER_API MulciberStatus mulciber_adopt_device(MulciberContext* context,
                                                  const MulciberDeviceInfo* info,
                                                  MulciberDevice** device);
/* Opens a device that the library owns. name: index, part of a name, or NULL for the best. */
MULCIBER_API MulciberStatus mulciber_open_device(MulciberContext* context, const char* name,
                                                 MulciberDevice** device);
MULCIBER_API void mulciber_destroy_device(MulciberDevice* device);
/* bytes NULL: sets *size. Otherwise writes at most *size bytes, and sets it to their number. */
MULCIBER_API MulciberStatus mulciber_pipeline_cache(MulciberContext* context,
                                                    MulciberDevice* device, size_t* size,
                                                    void* bytes);

/* ---- Models ---- */

MULCIBER_API MulciberStatus mulciber_open_model(MulciberContext* context, const char* path,
                                                MulciberModel** model);
MULCIBER_API void mulciber_destroy_model(MulciberModel* model);

typedef struct MulciberLoadInfo {
  uint32_t size;
  VkBool32 half_weights;     /* keep matrices in 16 bits even where the file holds 32 */
  VkBool32 half_activations; /* activations and caches in 16 bits */
  uint32_t context;          /* language models: tokens; 0: the model's own, at most 4096 */
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
/* Makes a second conversation that shares the generator's weights. tokens: its context, at most
 * that of the generator; 0: as many. Either may be destroyed first; one thread uses both. */
MULCIBER_API MulciberStatus mulciber_new_conversation(MulciberContext* context,
                                                      const MulciberGenerator* generator,
                                                      uint32_t tokens,
                                                      MulciberGenerator** conversation);
MULCIBER_API void mulciber_destroy_generator(MulciberGenerator* generator);
/* Save and load the context of a generator: its tokens with their keys and values. */
MULCIBER_API MulciberStatus mulciber_save_snapshot(MulciberContext* context,
                                                   MulciberGenerator* generator, const char* file);
MULCIBER_API MulciberStatus mulciber_load_snapshot(MulciberContext* context,
                                                   MulciberGenerator* generator, const char* file);

/* Take and restore such a snapshot in memory, for instance before a device is lost. bytes NULL:
 * sets *size. Otherwise writes at most *size bytes, and sets it to their number. */
MULCIBER_API MulciberStatus mulciber_take_snapshot(MulciberContext* context,
                                                   MulciberGenerator* generator, size_t* size,
                                                   void* bytes);
MULCIBER_API MulciberStatus mulciber_restore_snapshot(MulciberContext* context,
                                                      MulciberGenerator* generator,
                                                      const void* bytes, size_t size);

/* ---- Text embeddings ---- */

MULCIBER_API MulciberStatus mulciber_load_text_encoder(MulciberContext* context,
                                                       MulciberDevice* device,
                                                       const MulciberModel* model,
                                                       const MulciberLoadInfo* info,
                                                       MulciberTextEncoder** encoder);
MULCIBER_API void mulciber_destroy_text_encoder(MulciberTextEncoder* encoder);
/* Floats in an embedding. */
MULCIBER_API uint32_t mulciber_vector_width(const MulciberTextEncoder* encoder);

typedef struct MulciberEmbedInfo {
  uint32_t size;
  VkBool32 refuse_long; /* texts with too many tokens are an error instead of truncated */
  const char* prompt;   /* prefix of every text; NULL: from the model's files */
} MulciberEmbedInfo;

/* Computes embeddings of `count` texts, one after another. Pooling and normalization are those of
 * the model's files. Submits and waits, unlike tasks. info: may be NULL. */
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
  VkBool32 sample;         /* use the fields below; otherwise the model's files decide */
  float temperature;       /* 0: greedy decoding */
  uint32_t top_k;          /* 0: all */
  float top_p;             /* 0 and from 1 on: all */
  float min_p;
  uint64_t seed;
  VkBool32 ignore_end; /* continue after the model's own end of text */
  /* Called with pieces of the answer, whole UTF-8 characters; may be NULL. */
  void (*on_text)(void* user, const char* text, size_t bytes);
  void* user;
  const MulciberGrammar* grammar; /* guided decoding; NULL: any text */
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
/* Waits for slices of mulciber_step(). Slices of mulciber_record() must have ended and been
 * reported to mulciber_completed(): a library built without NDEBUG checks that. */
MULCIBER_API void mulciber_destroy_task(MulciberTask* task);

typedef struct MulciberSlice {
  uint64_t number;     /* 1 is a task's first; 0: there was nothing to do */
  uint32_t dispatches; /* compute dispatches */
  double estimated_us; /* on the device */
} MulciberSlice;

/* Records dispatches that are expected to take budget_us into the application's command buffer,
 * outside of render passes. */
MULCIBER_API MulciberStatus mulciber_record(MulciberContext* context, MulciberTask* task,
                                            VkCommandBuffer commands, double budget_us,
                                            MulciberSlice* slice);
/* Tells the task that slices up to this number have ended on the device. */
MULCIBER_API MulciberStatus mulciber_completed(MulciberContext* context, MulciberTask* task,
                                               uint64_t number);

typedef struct MulciberSemaphores {
  uint32_t size;
  uint32_t wait_count;
  const VkSemaphore* waits;
  const VkPipelineStageFlags* wait_stages;
  const uint64_t* wait_values; /* for timeline semaphores; NULL: there are none */
  uint32_t signal_count;
  const VkSemaphore* signals;
  const uint64_t* signal_values;
} MulciberSemaphores;

typedef struct MulciberStep {
  MulciberSlice slice;   /* number 0: nothing was submitted */
  VkBool32 waits;        /* nothing was submitted, because earlier slices still run */
  VkSemaphore semaphore; /* reaches `value` when the slice has ended; null without
                          * timelineSemaphore */
  uint64_t value;
} MulciberStep;

/* Submits dispatches that are expected to take budget_us; never waits. semaphores: may be NULL.
 * */
MULCIBER_API MulciberStatus mulciber_step(MulciberContext* context, MulciberTask* task,
                                          double budget_us, const MulciberSemaphores* semaphores,
                                          MulciberStep* step);
/* Waits for slices that mulciber_step() submitted. */
MULCIBER_API MulciberStatus mulciber_wait(MulciberContext* context, MulciberTask* task);
MULCIBER_API VkBool32 mulciber_is_done(const MulciberTask* task);
MULCIBER_API void mulciber_cancel(MulciberTask* task);
/* Gives the text so far; once the task is done, all of it. Valid until the next call with this
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

/* translation: a task of this translator that is done; it may be destroyed afterwards. The maps
 * exist from the end of the new task's last slice until it is destroyed. */
MULCIBER_API MulciberStatus mulciber_begin_attention(MulciberContext* context,
                                                     MulciberTranslator* translator,
                                                     MulciberTask* translation,
                                                     MulciberTask** task);
/* Whether the last slice of such a task was recorded or submitted: copies of maps can be recorded
 * then. */
MULCIBER_API VkBool32 mulciber_is_recorded(const MulciberTask* task);
/* Extent of a map: the width counts keys, the height queries. */
MULCIBER_API MulciberStatus mulciber_attention_extent(MulciberContext* context, MulciberTask* task,
                                                      MulciberAttentionKind kind,
                                                      VkExtent2D* extent);

/* An image made with VK_IMAGE_USAGE_TRANSFER_DST_BIT. The copy includes layout transitions and
 * barriers. */
typedef struct MulciberHostImage {
  uint32_t size;
  VkImage image;
  VkFormat format;   /* VK_FORMAT_R32_SFLOAT */
  VkExtent2D extent; /* in texels, of the mip level */
  uint32_t mip_level, array_layer;
  VkOffset2D offset;          /* texel of the first value */
  VkImageLayout layout;       /* the layout before the copy */
  VkImageLayout final_layout; /* 0: VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL */
  /* Stages and accesses of its uses before and after the copy; stages 0: fragment shader reads.
   * */
  VkPipelineStageFlags stages;
  VkAccessFlags accesses;
  /* The image is exclusive, and queue_family, another family than MulciberDeviceInfo's, owns it:
   * the copy records its half of the ownership transfers, the application the other. */
  VkBool32 changes_family;
  uint32_t queue_family;
} MulciberHostImage;

/* A buffer made with VK_BUFFER_USAGE_TRANSFER_DST_BIT. */
typedef struct MulciberHostBuffer {
  uint32_t size;
  VkBuffer buffer;
  VkDeviceSize offset, bytes;  /* offset: a multiple of 4 */
  VkPipelineStageFlags stages; /* see MulciberHostImage */
  VkAccessFlags accesses;
  VkBool32 changes_family;
  uint32_t queue_family;
} MulciberHostBuffer;

/* Records a copy of a map, a texel for each probability, query 0 in the first row: after the task's
 * last slice, outside of render passes. */
MULCIBER_API MulciberStatus mulciber_record_attention_image(MulciberContext* context,
                                                            MulciberTask* task,
                                                            VkCommandBuffer commands,
                                                            const MulciberHostImage* image,
                                                            const MulciberAttentionMap* map);
/* Records a copy of a map: floats, row after row. */
MULCIBER_API MulciberStatus mulciber_record_attention_buffer(MulciberContext* context,
                                                             MulciberTask* task,
                                                             VkCommandBuffer commands,
                                                             const MulciberHostBuffer* buffer,
                                                             const MulciberAttentionMap* map);

#ifdef __cplusplus
}
#endif

#endif
