// `mulciber bench -m` with a text encoder.
#pragma once

#include "apps/bench/model.h"
#include "models/families/open_model.h"

namespace mulciber::apps {

/// Encodes texts of 8 to 256 tokens in batches in their own order and sorted by length,
/// interleaved, `options.repeats` times, then the sorted ones under the profiler. Prints tokens per
/// second (medians), the share of padding, and per kernel row the numbers of kernel_rows(). Throws
/// as TextEncoder does.
int bench_encoder(const ModelBench& options, const OpenModel& opened);

}  // namespace mulciber::apps
