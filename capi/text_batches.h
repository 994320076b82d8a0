// Batches of texts in the C interface: options and statistics of text encoders, classifiers and
// passage readers.
#pragma once

#include "capi/result.h"
#include "mulciber/c/encoder_statistics.h"
#include "mulciber/text_encoder.h"

namespace mulciber::c {

/// Options of batches, from the fields that structures of options have in common.
template <typename Info>
TextBatchOptions text_batch_options(const Info& info) {
  TextBatchOptions options;
  if (info.batch_tokens > 0) options.batch_tokens = info.batch_tokens;
  if (info.batch_texts > 0) options.batch_texts = info.batch_texts;
  if (info.on_progress)
    options.progress = [call = info.on_progress, user = info.user](size_t done, size_t total) {
      call(user, done, total);
    };
  options.cancel = cancel_flag(info.cancel);
  return options;
}

inline void write_statistics(const EncoderStatistics& from, MulciberEncoderStatistics& to) {
  to.texts = from.texts;
  to.batches = from.batches;
  to.truncated = from.truncated;
  to.tokens = from.tokens;
  to.padded_tokens = from.padded_tokens;
  to.load_seconds = from.load_seconds;
  to.tokenize_seconds = from.tokenize_seconds;
  to.prepare_seconds = from.prepare_seconds;
  to.run_seconds = from.run_seconds;
  to.total_seconds = from.total_seconds;
  to.weight_bytes = from.weight_bytes;
  to.predicted_device_bytes = from.predicted_device_bytes;
  to.peak_device_bytes = from.peak_device_bytes;
}

}  // namespace mulciber::c
