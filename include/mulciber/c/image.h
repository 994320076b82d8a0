/* Mulciber for C: images, and what models of images have in common. C11. */
#ifndef MULCIBER_C_IMAGE_H
#define MULCIBER_C_IMAGE_H

#include "mulciber/c/cancel.h"
#include "mulciber/c/context.h"
#include "mulciber/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pixels row by row from the top: in memory, or in a buffer. Lists of images are stepped through by
 * the size of the first. */
typedef struct MulciberImage {
  uint32_t size;
  uint32_t width, height; /* at most 2^26 pixels in all */
  const uint8_t* rgb;     /* height * width * 3 bytes */
  /* For tasks, otherwise, rgb NULL: pixels in the model's input size, for instance those of a
   * frame, as R8G8B8A8 without padding, in a buffer made with VK_BUFFER_USAGE_TRANSFER_SRC_BIT,
   * which the first slice copies. */
  const MulciberApplicationBuffer* pixels;
} MulciberImage;

/* Decode a PNG, JPEG, WebP, PPM or PGM file, as decode_image() in mulciber/image.h does; the image
 * points into the result. name: for messages; may be NULL. MULCIBER_ERROR_MODEL for files that hold
 * no such image, or a format that this build cannot read. */
MULCIBER_API MulciberStatus mulciber_read_image(MulciberContext* context, const char* path,
                                                MulciberResult** result, MulciberImage* image);
MULCIBER_API MulciberStatus mulciber_decode_image(MulciberContext* context, const void* bytes,
                                                  size_t size, const char* name,
                                                  MulciberResult** result, MulciberImage* image);

/* How a call goes through its images. */
typedef struct MulciberImageBatchInfo {
  uint32_t size;
  uint32_t batch_images; /* most images in a batch; 0: 16 */
  /* Called after every batch with the numbers of finished and of all images; may be NULL. */
  void (*on_progress)(void* user, uint32_t done, uint32_t total);
  void* user;
  MulciberCancel* cancel; /* read between batches; NULL: none */
} MulciberImageBatchInfo;

/* Attention maps of an image, and their rollout through the layers. */
typedef struct MulciberImageAttention {
  uint32_t size;
  uint32_t layers, heads;
  uint32_t rows, columns; /* patches down and across */
  /* layers * heads * rows * columns probabilities: attention of the class token to each patch; for
   * models without a class token, the mean over all patches that attend. */
  const float* maps;
  const float* rollout;      /* rows * columns, see ImageAttention in mulciber/image_encoder.h */
  const MulciberImage* seen; /* the image as the model reads it: resized and cropped */
} MulciberImageAttention;

/* Counts and times of the last call, and of loading where marked "load". */
typedef struct MulciberImageStatistics {
  uint32_t size;
  uint32_t images, batches;
  double load_seconds;    /* load: files to device */
  double resize_seconds;  /* resizing to the model's input, on the CPU */
  double prepare_seconds; /* building and recording programs */
  double run_seconds;     /* on the device, transfers included */
  double total_seconds;
  uint64_t weight_bytes;           /* load: on the device */
  uint64_t predicted_device_bytes; /* weights and activations, before allocating */
  uint64_t peak_device_bytes;      /* most bytes allocated at once */
} MulciberImageStatistics;

#ifdef __cplusplus
}
#endif

#endif
