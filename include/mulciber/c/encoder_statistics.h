/* Mulciber for C: counts and times of text encoders, classifiers and passage readers. C11. */
#ifndef MULCIBER_C_ENCODER_STATISTICS_H
#define MULCIBER_C_ENCODER_STATISTICS_H

#include "mulciber/c/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts and times of the last call that computed at once, and of loading where marked "load", see
 * EncoderStatistics in mulciber/text_encoder.h. */
typedef struct MulciberEncoderStatistics {
  uint32_t size;
  uint64_t texts, batches, truncated;
  uint64_t tokens, padded_tokens; /* special tokens included; padding too */
  double load_seconds;            /* load */
  double tokenize_seconds, prepare_seconds, run_seconds, total_seconds;
  uint64_t weight_bytes; /* load: on the device */
  uint64_t predicted_device_bytes, peak_device_bytes;
} MulciberEncoderStatistics;

#ifdef __cplusplus
}
#endif

#endif
