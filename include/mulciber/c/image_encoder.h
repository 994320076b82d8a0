/* Mulciber for C: vision transformers. C11. */
#ifndef MULCIBER_C_IMAGE_ENCODER_H
#define MULCIBER_C_IMAGE_ENCODER_H

#include "mulciber/c/model.h"

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

/* Pixels row by row from the top: in memory, or in a buffer. */
typedef struct MulciberImage {
  uint32_t size;
  uint32_t width, height;
  const uint8_t* rgb; /* height * width * 3 bytes */
  /* Otherwise, rgb NULL: pixels in the model's input size, for instance those of a frame, as
   * R8G8B8A8 without padding, in a buffer made with VK_BUFFER_USAGE_TRANSFER_SRC_BIT, which the
   * first slice copies. */
  const MulciberApplicationBuffer* pixels;
} MulciberImage;

typedef struct MulciberImageInfo {
  uint32_t size;
  MulciberBool mean;      /* mean pooling over patches instead of the model's own pooling */
  MulciberBool normalize; /* scale the embedding to length 1 */
  MulciberBool attention; /* keep the attention maps of all layers and heads */
} MulciberImageInfo;

/* ---- Deprecated names of version 0.1 ---- */

typedef MulciberImage MulciberPicture MULCIBER_DEPRECATED("use MulciberImage");

typedef MulciberImageInfo MulciberPictureInfo MULCIBER_DEPRECATED("use MulciberImageInfo");

#ifdef __cplusplus
}
#endif

#endif
