// `mulciber bench -m` with a text encoder.
#pragma once

#include "apps/bench/model.h"
#include "models/families/open_model.h"

namespace mulciber::apps {

/// Encodes texts of 8 to 256 tokens in batches as they come and sorted by length, `options.repeats`
/// times in turns, then the sorted ones under the profiler, and prints tokens per second (medians),
/// the share of padding, and per kernel row what kernel_rows() has. Throws as TextEncoder does.
int bench_encoder(const ModelBench& options, const OpenModel& opened);

}  // namespace mulciber::apps
