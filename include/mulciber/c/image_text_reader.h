/* Mulciber for C: optical character recognition. C11. */
#ifndef MULCIBER_C_IMAGE_TEXT_READER_H
#define MULCIBER_C_IMAGE_TEXT_READER_H

#include "mulciber/c/image.h"
#include "mulciber/c/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A vision transformer and a decoder that attends to its patches, on a device. */
typedef struct MulciberImageTextReader MulciberImageTextReader;

/* info: may be NULL. The model may be destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_image_text_reader(MulciberContext* context,
                                                            MulciberDevice* device,
                                                            const MulciberModel* model,
                                                            const MulciberLoadInfo* info,
                                                            MulciberImageTextReader** reader);
MULCIBER_API void mulciber_destroy_image_text_reader(MulciberImageTextReader* reader);

/* See mulciber_trim_image_encoder(). */
MULCIBER_API MulciberStatus mulciber_trim_image_text_reader(MulciberContext* context,
                                                            MulciberImageTextReader* reader,
                                                            uint64_t* freed);
MULCIBER_API MulciberStatus mulciber_image_text_reader_statistics(
    MulciberContext* context, const MulciberImageTextReader* reader,
    MulciberImageStatistics* statistics);

typedef struct MulciberReadTextInfo {
  uint32_t size;
  uint32_t beams;         /* 0: 1, which is greedy search; at most 32 */
  uint32_t max_tokens;    /* 0: as many as the model has positions */
  MulciberBool attention; /* give maps and the image as seen, by an extra pass for each image */
  /* Called after every image with the numbers of finished and of all images; may be NULL. */
  void (*on_progress)(void* user, uint32_t done, uint32_t total);
  void* user;
  MulciberCancel* cancel; /* read between tokens; NULL: none */
} MulciberReadTextInfo;

typedef struct MulciberImageText {
  uint32_t size;
  MulciberBool complete; /* false: the call was cancelled before the image was done */
  const char* text;
  double log_probability; /* mean over the tokens and the end-of-text token */
  uint32_t id_count;
  const uint32_t* ids;       /* without the end-of-text token */
  const char* const* tokens; /* the text of each id */
  /* With MulciberReadTextInfo::attention; otherwise 0 and NULL. */
  uint32_t layers, heads;
  uint32_t rows, columns; /* patches down and across */
  /* layers * heads * id_count * rows * columns: cross-attention of each token to each patch. The
   * rest of a token's weight lies on the vision transformer's tokens that are not patches. */
  const float* maps;
  const MulciberImage* seen; /* the image as the model reads it */
} MulciberImageText;

/* Reads the texts of `count` images in memory; submits and waits. texts: a list of `count`, stepped
 * through by MulciberImageText::size. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_read_image_texts(MulciberContext* context,
                                                      MulciberImageTextReader* reader,
                                                      uint32_t count, const MulciberImage* images,
                                                      const MulciberReadTextInfo* info,
                                                      MulciberResult** result,
                                                      const MulciberImageText** texts);

#ifdef __cplusplus
}
#endif

#endif
