/* Mulciber for C: text classification. C11. */
#ifndef MULCIBER_C_CLASSIFIER_H
#define MULCIBER_C_CLASSIFIER_H

#include "mulciber/c/cancel.h"
#include "mulciber/c/encoder_statistics.h"
#include "mulciber/c/model.h"
#include "mulciber/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MulciberClassifier MulciberClassifier; /* a model with labels on a device */

/* Fails for a model without a classifier. info: may be NULL. The model may be destroyed
 * afterwards. */
MULCIBER_API MulciberStatus mulciber_load_classifier(MulciberContext* context,
                                                     MulciberDevice* device,
                                                     const MulciberModel* model,
                                                     const MulciberLoadInfo* info,
                                                     MulciberClassifier** classifier);
MULCIBER_API void mulciber_destroy_classifier(MulciberClassifier* classifier);

typedef struct MulciberClassifierReport {
  uint32_t size;
  MulciberBool several_labels; /* probabilities are independent; otherwise their sum is 1 */
  uint32_t max_tokens;         /* most tokens of a text, or of a pair */
  uint32_t label_count;
  const char* const* labels;
} MulciberClassifierReport;

/* The returned pointers are valid until the classifier is destroyed. */
MULCIBER_API MulciberStatus mulciber_describe_classifier(MulciberContext* context,
                                                         const MulciberClassifier* classifier,
                                                         MulciberClassifierReport* report);

typedef struct MulciberClassifyInfo {
  uint32_t size;
  MulciberBool refuse_long; /* texts with too many tokens are an error instead of truncated */
  uint32_t batch_tokens;    /* most tokens of a batch, padding included; 0: 2048 */
  uint32_t batch_texts;     /* most texts or pairs of a batch; 0: 64 */
  /* Called after every batch with the numbers of finished and of all texts; may be NULL. */
  void (*on_progress)(void* user, uint64_t done, uint64_t total);
  void* user;
  MulciberCancel* cancel; /* NULL: none */
} MulciberClassifyInfo;

typedef struct MulciberClassification {
  uint32_t size;
  MulciberBool complete;      /* false: cancelled before this text was done; what follows is 0 */
  MulciberBool truncated;     /* the text has more tokens; of a pair the longer one was cut first */
  uint32_t tokens;            /* tokens that were read, special tokens included */
  uint32_t best;              /* the most probable label */
  uint32_t label_count;       /* probabilities and logits, in the order of the labels */
  const float* probabilities; /* see MulciberClassifierReport::several_labels */
  const float* logits;
} MulciberClassification;

/* Classifies `count` texts, or pairs that are classified as one text, such as a question and an
 * answer. pairs: second texts, NULL for texts without one; NULL: no text has one. classifications:
 * in the order of the texts, stepped through by MulciberClassification::size. info: may be NULL. */
MULCIBER_API MulciberStatus mulciber_classify(MulciberContext* context,
                                              MulciberClassifier* classifier, uint32_t count,
                                              const char* const* texts, const char* const* pairs,
                                              const MulciberClassifyInfo* info,
                                              MulciberResult** result,
                                              const MulciberClassification** classifications);

MULCIBER_API MulciberStatus mulciber_classifier_statistics(MulciberContext* context,
                                                           const MulciberClassifier* classifier,
                                                           MulciberEncoderStatistics* statistics);

/* See mulciber_trim_text_encoder(). */
MULCIBER_API MulciberStatus mulciber_trim_classifier(MulciberContext* context,
                                                     MulciberClassifier* classifier,
                                                     uint64_t* bytes);

#ifdef __cplusplus
}
#endif

#endif
