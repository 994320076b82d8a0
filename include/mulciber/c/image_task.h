/* Mulciber for C: vision transformers in slices. mulciber/c/vector.h copies embeddings and hidden
 * states. The rules are those of mulciber/image_task.h. C11. */
#ifndef MULCIBER_C_IMAGE_TASK_H
#define MULCIBER_C_IMAGE_TASK_H

#include "mulciber/c/image_encoder.h"
#include "mulciber/c/resources.h"
#include "mulciber/c/slices.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Resizes and crops an image in memory, on the CPU; it is not read afterwards.
 * info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_begin_image(MulciberContext* context,
                                                 MulciberImageEncoder* encoder,
                                                 const MulciberImage* image,
                                                 const MulciberImageInfo* info,
                                                 MulciberTask** task);

typedef struct MulciberImageReport {
  uint32_t size;
  VkExtent2D patches;    /* across and down */
  uint32_t vector_width; /* floats in an embedding, and in a token's hidden state */
  uint32_t state_width;
  uint32_t tokens;        /* tokens before the patches included */
  uint32_t layers, heads; /* layers and heads of maps; 0 without MulciberImageInfo::attention */
} MulciberImageReport;

MULCIBER_API MulciberStatus mulciber_describe_image(MulciberContext* context,
                                                    const MulciberTask* task,
                                                    MulciberImageReport* report);

/* ---- Attention maps ---- */

/* Names an attention map: the attention of one token of an image to each patch. */
typedef struct MulciberPatchMap {
  uint32_t size;
  uint32_t layer, head;
  VkBool32 of_patch; /* VK_FALSE: the class token, in models that have one */
  uint32_t patch;    /* the patch that attends, counted row by row */
} MulciberPatchMap;

/* Records a copy of a map, a texel for each patch: after the task's last slice, outside of render
 * passes. */
MULCIBER_API MulciberStatus mulciber_record_patches_image(MulciberContext* context,
                                                          MulciberTask* task,
                                                          VkCommandBuffer commands,
                                                          const MulciberApplicationImage* image,
                                                          const MulciberPatchMap* map);

/* Records a copy of a map: floats, row after row. */
MULCIBER_API MulciberStatus mulciber_record_patches_buffer(MulciberContext* context,
                                                           MulciberTask* task,
                                                           VkCommandBuffer commands,
                                                           const MulciberApplicationBuffer* buffer,
                                                           const MulciberPatchMap* map);

/* ---- Deprecated names of version 0.1 ---- */

MULCIBER_DEPRECATED("use mulciber_begin_image")
MULCIBER_API MulciberStatus mulciber_begin_picture(MulciberContext* context,
                                                   MulciberImageEncoder* encoder,
                                                   const MulciberImage* image,
                                                   const MulciberImageInfo* info,
                                                   MulciberTask** task);

MULCIBER_DEPRECATED("use mulciber_begin_image and MulciberImage::pixels")
MULCIBER_API MulciberStatus
mulciber_begin_picture_of_pixels(MulciberContext* context, MulciberImageEncoder* encoder,
                                 const MulciberApplicationBuffer* pixels, const VkExtent2D* extent,
                                 const MulciberImageInfo* info, MulciberTask** task);

typedef MulciberImageReport MulciberPictureReport MULCIBER_DEPRECATED("use MulciberImageReport");

MULCIBER_DEPRECATED("use mulciber_describe_image")
MULCIBER_API MulciberStatus mulciber_describe_picture(MulciberContext* context,
                                                      const MulciberTask* task,
                                                      MulciberImageReport* report);

#ifdef __cplusplus
}
#endif

#endif
