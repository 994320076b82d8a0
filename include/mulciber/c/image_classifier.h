/* Mulciber for C: image classification. C11. */
#ifndef MULCIBER_C_IMAGE_CLASSIFIER_H
#define MULCIBER_C_IMAGE_CLASSIFIER_H

#include "mulciber/c/image.h"
#include "mulciber/c/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A vision transformer with a classification head, on a device. */
typedef struct MulciberImageClassifier MulciberImageClassifier;

/* MULCIBER_ERROR_MODEL for a model without such a head. info: may be NULL. The model may be
 * destroyed afterwards. */
MULCIBER_API MulciberStatus mulciber_load_image_classifier(MulciberContext* context,
                                                           MulciberDevice* device,
                                                           const MulciberModel* model,
                                                           const MulciberLoadInfo* info,
                                                           MulciberImageClassifier** classifier);
MULCIBER_API void mulciber_destroy_image_classifier(MulciberImageClassifier* classifier);

/* See mulciber_trim_image_encoder(). */
MULCIBER_API MulciberStatus mulciber_trim_image_classifier(MulciberContext* context,
                                                           MulciberImageClassifier* classifier,
                                                           uint64_t* freed);

typedef struct MulciberImageClassifierReport {
  uint32_t size;
  MulciberBool several_labels; /* an image may have several: their probabilities are independent */
  uint32_t label_count;
  const char* const* labels;          /* valid until the classifier is destroyed */
  uint32_t image_width, image_height; /* pixels of the model's input */
  uint32_t layers, heads;
} MulciberImageClassifierReport;

MULCIBER_API MulciberStatus mulciber_describe_image_classifier(
    MulciberContext* context, const MulciberImageClassifier* classifier,
    MulciberImageClassifierReport* report);
MULCIBER_API MulciberStatus mulciber_image_classifier_statistics(
    MulciberContext* context, const MulciberImageClassifier* classifier,
    MulciberImageStatistics* statistics);

typedef struct MulciberImageLabels {
  uint32_t size;
  MulciberBool complete; /* false: the call was cancelled before the image was done */
  uint32_t best;         /* the most probable label */
  uint32_t label_count;
  /* By label: they add up to 1, or are independent if MulciberImageClassifierReport says so. */
  const float* probabilities;
  const float* logits;
} MulciberImageLabels;

/* Classifies `count` images in memory; submits and waits. labels: a list of `count`, stepped
 * through by MulciberImageLabels::size. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_classify_images(MulciberContext* context,
                                                     MulciberImageClassifier* classifier,
                                                     uint32_t count, const MulciberImage* images,
                                                     const MulciberImageBatchInfo* info,
                                                     MulciberResult** result,
                                                     const MulciberImageLabels** labels);

/* Computes the attention maps of one image in memory. */
MULCIBER_API MulciberStatus mulciber_image_classifier_attention(
    MulciberContext* context, MulciberImageClassifier* classifier, const MulciberImage* image,
    MulciberResult** result, const MulciberImageAttention** attention);

#ifdef __cplusplus
}
#endif

#endif
