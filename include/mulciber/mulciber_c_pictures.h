/* Mulciber for C: pictures through a vision transformer in slices. Vectors and states are copied as
 * those of texts are, by mulciber_record_vector(), mulciber_record_states() and mulciber_vector().
 * The rules are those of mulciber/picture_task.h and of mulciber_c.h. C11. */
#ifndef MULCIBER_MULCIBER_C_PICTURES_H
#define MULCIBER_MULCIBER_C_PICTURES_H

#include "mulciber/mulciber_c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberImageEncoder MulciberImageEncoder; /* a vision transformer on a device */

/* info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_load_image_encoder(MulciberContext* context,
                                                        MulciberDevice* device,
                                                        const MulciberModel* model,
                                                        const MulciberLoadInfo* info,
                                                        MulciberImageEncoder** encoder);
MULCIBER_API void mulciber_destroy_image_encoder(MulciberImageEncoder* encoder);

/* Pixels of three bytes, red, green and blue, line by line from the top. */
typedef struct MulciberPicture {
  uint32_t size;
  uint32_t width, height;
  const uint8_t* rgb; /* height * width * 3 */
} MulciberPicture;

typedef struct MulciberPictureInfo {
  uint32_t size;
  VkBool32 mean; /* the mean of all patches' states, instead of what the model was trained for */
  VkBool32 normalize; /* a vector of length 1 */
  VkBool32 attention; /* keep the maps of all layers and heads */
} MulciberPictureInfo;

/* The picture is resized and cut here, on the host, and not read afterwards. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_begin_picture(MulciberContext* context,
                                                   MulciberImageEncoder* encoder,
                                                   const MulciberPicture* picture,
                                                   const MulciberPictureInfo* info,
                                                   MulciberTask** task);
/* Of pixels that are as the model reads them, such as a frame's: `extent` of R8G8B8A8 without
 * padding, in a buffer made with VK_BUFFER_USAGE_TRANSFER_SRC_BIT, that the first slice copies. */
MULCIBER_API MulciberStatus mulciber_begin_picture_of_pixels(
    MulciberContext* context, MulciberImageEncoder* encoder, const MulciberHostBuffer* pixels,
    const VkExtent2D* extent, const MulciberPictureInfo* info, MulciberTask** task);

typedef struct MulciberPictureReport {
  uint32_t size;
  VkExtent2D patches;    /* across and down */
  uint32_t vector_width; /* floats of a vector, and of a token's state */
  uint32_t state_width;
  uint32_t tokens;        /* those before the patches included */
  uint32_t layers, heads; /* of maps; 0 without MulciberPictureInfo's attention */
} MulciberPictureReport;

MULCIBER_API MulciberStatus mulciber_describe_picture(MulciberContext* context,
                                                      const MulciberTask* task,
                                                      MulciberPictureReport* report);

/* What one token of a picture attends to among its patches. */
typedef struct MulciberPatchMap {
  uint32_t size;
  uint32_t layer, head;
  VkBool32 of_patch; /* VK_FALSE: the token that stands for the whole, in models that have one */
  uint32_t patch;    /* that attends, counted line by line */
} MulciberPatchMap;

/* A texel for each patch, behind the task's last slice, outside of render passes. */
MULCIBER_API MulciberStatus mulciber_record_patches_image(MulciberContext* context,
                                                          MulciberTask* task,
                                                          VkCommandBuffer commands,
                                                          const MulciberHostImage* image,
                                                          const MulciberPatchMap* map);
/* Floats, row after row. */
MULCIBER_API MulciberStatus mulciber_record_patches_buffer(MulciberContext* context,
                                                           MulciberTask* task,
                                                           VkCommandBuffer commands,
                                                           const MulciberHostBuffer* buffer,
                                                           const MulciberPatchMap* map);

#ifdef __cplusplus
}
#endif

#endif
