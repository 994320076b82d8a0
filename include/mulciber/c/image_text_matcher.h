/* Mulciber for C: models with one embedding space for images and texts, such as CLIP and SigLIP.
 * C11. */
#ifndef MULCIBER_C_IMAGE_TEXT_MATCHER_H
#define MULCIBER_C_IMAGE_TEXT_MATCHER_H

#include "mulciber/c/image.h"
#include "mulciber/c/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rates how well texts fit an image, zero-shot labels included, on a device. */
typedef struct MulciberImageTextMatcher MulciberImageTextMatcher;

/* MULCIBER_ERROR_MODEL for a model without a text encoder. info: may be NULL. The model may be
 * destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_image_text_matcher(MulciberContext* context,
                                                             MulciberDevice* device,
                                                             const MulciberModel* model,
                                                             const MulciberLoadInfo* info,
                                                             MulciberImageTextMatcher** matcher);
MULCIBER_API void mulciber_destroy_image_text_matcher(MulciberImageTextMatcher* matcher);

/* See mulciber_trim_image_encoder(). */
MULCIBER_API MulciberStatus mulciber_trim_image_text_matcher(MulciberContext* context,
                                                             MulciberImageTextMatcher* matcher,
                                                             uint64_t* freed);

typedef struct MulciberImageTextMatcherReport {
  uint32_t size;
  uint32_t vector_width;              /* floats in an embedding, of an image or a text */
  uint32_t text_tokens;               /* most tokens of a text */
  MulciberBool probabilities_add_up;  /* to 1 over the texts; otherwise they are independent */
  uint32_t image_width, image_height; /* pixels of the model's input */
} MulciberImageTextMatcherReport;

MULCIBER_API MulciberStatus mulciber_describe_image_text_matcher(
    MulciberContext* context, const MulciberImageTextMatcher* matcher,
    MulciberImageTextMatcherReport* report);
MULCIBER_API MulciberStatus mulciber_image_text_matcher_statistics(
    MulciberContext* context, const MulciberImageTextMatcher* matcher,
    MulciberImageStatistics* statistics);

typedef struct MulciberImageMatch {
  uint32_t size;
  MulciberBool complete; /* false: the call was cancelled before the image was done */
  uint32_t best;         /* the text that fits best */
  uint32_t text_count;
  const float* probabilities; /* by text, see MulciberImageTextMatcherReport */
  const float* logits;        /* scaled cosines */
} MulciberImageMatch;

/* Rates all texts for each of `count` images in memory; submits and waits. matches: a list of
 * `count`, stepped through by MulciberImageMatch::size. info: may be NULL. MULCIBER_ERROR_MODEL for
 * a text with more tokens than the model takes. */
MULCIBER_API MulciberStatus mulciber_match_images(MulciberContext* context,
                                                  MulciberImageTextMatcher* matcher, uint32_t count,
                                                  const MulciberImage* images, uint32_t text_count,
                                                  const char* const* texts,
                                                  const MulciberImageBatchInfo* info,
                                                  MulciberResult** result,
                                                  const MulciberImageMatch** matches);

/* Write embeddings of length 1, vector_width floats each, one after another. Those of images that a
 * cancelled call has not reached are 0. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_embed_matched_images(
    MulciberContext* context, MulciberImageTextMatcher* matcher, uint32_t count,
    const MulciberImage* images, const MulciberImageBatchInfo* info, float* vectors);
MULCIBER_API MulciberStatus mulciber_embed_matched_texts(MulciberContext* context,
                                                         MulciberImageTextMatcher* matcher,
                                                         uint32_t count, const char* const* texts,
                                                         float* vectors);

#ifdef __cplusplus
}
#endif

#endif
