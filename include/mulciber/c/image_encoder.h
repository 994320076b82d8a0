/* Mulciber for C: vision transformers. C11. */
#ifndef MULCIBER_C_IMAGE_ENCODER_H
#define MULCIBER_C_IMAGE_ENCODER_H

#include "mulciber/c/image.h"
#include "mulciber/c/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberImageEncoder MulciberImageEncoder; /* a vision transformer on a device */

/* info: may be NULL. The model may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_image_encoder(MulciberContext* context,
                                                        MulciberDevice* device,
                                                        const MulciberModel* model,
                                                        const MulciberLoadInfo* info,
                                                        MulciberImageEncoder** encoder);
MULCIBER_API void mulciber_destroy_image_encoder(MulciberImageEncoder* encoder);

/* Frees device memory that is kept for later images, see ImageEncoder::trim(). freed: bytes that
 * went back to the driver or the application; may be NULL. */
MULCIBER_API MulciberStatus mulciber_trim_image_encoder(MulciberContext* context,
                                                        MulciberImageEncoder* encoder,
                                                        uint64_t* freed);

typedef struct MulciberImageEncoderReport {
  uint32_t size;
  uint32_t vector_width; /* floats in an embedding by the model's own pooling */
  uint32_t state_width;  /* floats in a hidden state, and in an embedding by mean pooling */
  uint32_t image_width, image_height; /* pixels of the model's input */
  MulciberBool any_size;              /* it takes inputs of other sizes too */
  uint32_t patch;                     /* pixels, the side of a patch */
  uint32_t first_tokens;              /* tokens before the patches, such as the class token */
  uint32_t layers, heads;
  uint32_t text_tokens; /* most tokens of a text for an image-text matcher; 0: it takes none */
} MulciberImageEncoderReport;

MULCIBER_API MulciberStatus mulciber_describe_image_encoder(MulciberContext* context,
                                                            const MulciberImageEncoder* encoder,
                                                            MulciberImageEncoderReport* report);
MULCIBER_API MulciberStatus mulciber_image_encoder_statistics(MulciberContext* context,
                                                              const MulciberImageEncoder* encoder,
                                                              MulciberImageStatistics* statistics);

typedef struct MulciberImageInfo {
  uint32_t size;
  MulciberBool mean;      /* mean pooling over patches instead of the model's own pooling */
  MulciberBool normalize; /* scale the embedding to length 1 */
  MulciberBool attention; /* keep the attention maps of all layers and heads */
  /* The other fields are for mulciber_embed_images(), see MulciberImageBatchInfo. */
  MulciberBool states; /* also give the hidden states, which tasks always have */
  uint32_t batch_images;
  /* Images count once for each of vectors, states and attention maps that are asked for. */
  void (*on_progress)(void* user, uint32_t done, uint32_t total);
  void* user;
  MulciberCancel* cancel;
} MulciberImageInfo;

/* What was asked for beside the embedding of an image. */
typedef struct MulciberImageEmbedding {
  uint32_t size;
  MulciberBool complete; /* false: the call was cancelled before the image was done */
  uint32_t tokens;       /* with states: tokens before the patches, then patches; else 0 */
  uint32_t state_width;
  uint32_t rows, columns; /* with states: patches down and across */
  const float* states;    /* tokens * state_width, after the last layer; NULL without states */
  const MulciberImageAttention* attention; /* NULL without MulciberImageInfo::attention */
} MulciberImageEmbedding;

/* Computes embeddings of `count` images in memory, one after another; submits and waits, unlike
 * tasks. vectors: count times vector_width floats of the report, or state_width with mean pooling;
 * 0 for images that a cancelled call has not reached; NULL: they are not computed. result and
 * embeddings: a list of `count`, stepped through by MulciberImageEmbedding::size; both NULL: only
 * vectors are wanted. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_embed_images(MulciberContext* context,
                                                  MulciberImageEncoder* encoder, uint32_t count,
                                                  const MulciberImage* images,
                                                  const MulciberImageInfo* info, float* vectors,
                                                  MulciberResult** result,
                                                  const MulciberImageEmbedding** embeddings);

/* ---- Deprecated names of version 0.1 ---- */

typedef MulciberImage MulciberPicture MULCIBER_DEPRECATED("use MulciberImage");

typedef MulciberImageInfo MulciberPictureInfo MULCIBER_DEPRECATED("use MulciberImageInfo");

#ifdef __cplusplus
}
#endif

#endif
